import OperonModel
import OperonPorts
import OperonSystem

/// Checks the signatures of webhooks.
enum WebhookCheck {
    /// The same for every request without a valid signature, so that nobody learns which triggers
    /// there are, or which part of a signature is right.
    static let refusal = ClientError(
        .unauthorized,
        "The request has no valid signature for this webhook."
    )

    enum Verdict: Hashable {
        /// With the identity of the request.
        case valid(String)
        /// With the reason, for the coordinator's log alone.
        case invalid(String)
    }

    static func check(
        _ delivery: WebhookDelivery,
        _ source: WebhookSource,
        _ support: TriggerSupport,
        at now: WallTime
    ) -> Verdict {
        let key: [UInt8]
        switch secret(source.secret, support) {
        case .success(let bytes): key = bytes
        case .failure(let problem): return .invalid(problem.why)
        }
        switch source.signature {
        case .github:
            let prefix = "sha256="
            guard delivery.signature.hasPrefix(prefix),
                let code = bytes(delivery.signature.dropFirst(prefix.count)),
                isValid(code, for: delivery.body, key)
            else { return .invalid("the signature is missing or wrong") }
            guard delivery.delivery.isEmpty else {
                return .valid("delivery:" + TriggerIdentity.bounded(delivery.delivery))
            }
            return .valid("body:" + TriggerIdentity.hash(of: delivery.body))
        case .stripe: return checkStripe(delivery, source, key, at: now)
        }
    }

    /// `t=1492774577,v1=5257a8…,v1=…`: any of the signatures may be valid, because the sender may
    /// have two secrets for a while.
    private static func checkStripe(
        _ delivery: WebhookDelivery,
        _ source: WebhookSource,
        _ key: [UInt8],
        at now: WallTime
    ) -> Verdict {
        var time: Int64?
        var text = ""
        var codes: [[UInt8]] = []
        for part in delivery.signature.split(separator: ",").prefix(16) {
            let halves = part.split(separator: "=", maxSplits: 1)
            guard halves.count == 2 else { return .invalid("the signature has no such form") }
            let name = halves[0].filter { $0 != " " }
            if name == "t" {
                text = String(halves[1])
                time = Int64(text)
            } else if name == "v1", let code = bytes(halves[1]) {
                codes.append(code)
            }
        }
        guard let time, (0...(Int64.max / 1_000_000_000)).contains(time) else {
            return .invalid("the signature has no time")
        }
        let signed = Array(text.utf8) + [UInt8(ascii: ".")] + delivery.body
        guard codes.contains(where: { isValid($0, for: signed, key) }) else {
            return .invalid("the signature is missing or wrong")
        }
        let sent = WallTime(nanosecondsSince1970: time * 1_000_000_000)
        guard max(now - sent, sent - now) <= source.tolerance else {
            return .invalid("the time in the signature is too far away")
        }
        return .valid("body:" + TriggerIdentity.hash(of: signed))
    }

    private static func isValid(_ code: [UInt8], for message: [UInt8], _ key: [UInt8]) -> Bool {
        SHA256.isEqual(code, SHA256.authenticationCode(for: message, key: key))
    }

    /// The body as JSON: as it is, or as a text if it is none.
    static func data(
        of delivery: WebhookDelivery,
        _ codec: any TriggerCodec
    ) throws(ClientError) -> String {
        guard let text = String(validating: delivery.body, as: UTF8.self) else {
            throw ClientError(.invalid, "The body is not UTF-8.")
        }
        do {
            try codec.checkData(delivery.body)
            return text
        } catch {
            return String(decoding: JSONString.quoted(text), as: UTF8.self)
        }
    }

    private struct Problem: Error {
        let why: String
    }

    private static func secret(
        _ secret: WebhookSource.Secret,
        _ support: TriggerSupport
    ) -> Result<[UInt8], Problem> {
        var bytes: [UInt8]
        switch secret {
        case .file(let path):
            do throws(SecretFile.Problem) {
                bytes = try SecretFile.read(path)
            } catch {
                return .failure(Problem(why: error.text("secret", in: path)))
            }
        case .environment(let name):
            bytes = Array((support.environment[name] ?? "").utf8)
        }
        while let last = bytes.last, last == 0x0A || last == 0x0D { bytes.removeLast() }
        // With an empty key anybody could sign.
        guard !bytes.isEmpty else { return .failure(Problem(why: "the secret is empty")) }
        return .success(bytes)
    }

    /// The bytes of hexadecimal digits.
    private static func bytes(_ digits: Substring) -> [UInt8]? {
        let values = digits.utf8.map { digit -> UInt8? in
            switch digit {
            case 48...57: digit - 48
            case 97...102: digit - 87
            case 65...70: digit - 55
            case _: nil
            }
        }
        guard values.count == 64 else { return nil }
        var bytes: [UInt8] = []
        for place in stride(from: 0, to: 64, by: 2) {
            guard let high = values[place], let low = values[place + 1] else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}
