import Crypto
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

    /// Returns the identity of a request whose signature is valid.
    ///
    /// - Throws: `refusal`; `ClientError.unavailable` if the secret cannot be read.
    static func check(
        _ delivery: WebhookDelivery,
        _ source: WebhookSource,
        _ support: TriggerSupport,
        at now: WallTime
    ) throws(ClientError) -> String {
        guard delivery.body.count <= source.bodyBytes else {
            throw ClientError(
                .tooLarge,
                "The body has more than the \(source.bodyBytes) bytes that it may have."
            )
        }
        let key = SymmetricKey(data: try secret(source.secret, support))
        switch source.signature {
        case .github:
            let prefix = "sha256="
            guard delivery.signature.hasPrefix(prefix),
                let code = bytes(delivery.signature.dropFirst(prefix.count)),
                HMAC<SHA256>.isValidAuthenticationCode(
                    code,
                    authenticating: delivery.body,
                    using: key
                )
            else { throw refusal }
            guard delivery.delivery.isEmpty else {
                return "delivery:" + TriggerIdentity.bounded(delivery.delivery)
            }
            return "body:" + TriggerIdentity.hash(of: delivery.body)
        case .stripe:
            return try checkStripe(delivery, source, key, at: now)
        }
    }

    /// `t=1492774577,v1=5257a8…,v1=…`: any of the signatures may be valid, because the sender may
    /// have two secrets for a while.
    private static func checkStripe(
        _ delivery: WebhookDelivery,
        _ source: WebhookSource,
        _ key: SymmetricKey,
        at now: WallTime
    ) throws(ClientError) -> String {
        var time: Int64?
        var text = ""
        var codes: [[UInt8]] = []
        for part in delivery.signature.split(separator: ",").prefix(16) {
            let halves = part.split(separator: "=", maxSplits: 1)
            guard halves.count == 2 else { throw refusal }
            let name = halves[0].filter { $0 != " " }
            if name == "t" {
                text = String(halves[1])
                time = Int64(text)
            } else if name == "v1", let code = bytes(halves[1]) {
                codes.append(code)
            }
        }
        guard let time, (0...(Int64.max / 1_000_000_000)).contains(time) else { throw refusal }
        let signed = Array(text.utf8) + [UInt8(ascii: ".")] + delivery.body
        let isValid = codes.contains { code in
            HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: signed, using: key)
        }
        let sent = WallTime(nanosecondsSince1970: time * 1_000_000_000)
        let distance = max(now - sent, sent - now)
        guard isValid, distance <= source.tolerance else { throw refusal }
        return "body:" + TriggerIdentity.hash(of: signed)
    }

    /// The body as JSON: as it is, or as a text if it is none.
    static func data(
        of delivery: WebhookDelivery,
        _ source: WebhookSource
    ) throws(ClientError) -> String {
        guard let text = String(validating: delivery.body, as: UTF8.self) else {
            throw ClientError(.invalid, "The body is not UTF-8.")
        }
        do throws(JSONCheck.Malformed) {
            try JSONCheck.check(delivery.body)
            return text
        } catch {
            return String(decoding: JSONString.quoted(text), as: UTF8.self)
        }
    }

    private static func secret(
        _ secret: WebhookSource.Secret,
        _ support: TriggerSupport
    ) throws(ClientError) -> [UInt8] {
        var bytes: [UInt8]
        switch secret {
        case .file(let path):
            do throws(SecretFile.Problem) {
                bytes = try SecretFile.read(path)
            } catch {
                throw ClientError(
                    .unavailable,
                    "The secret of this webhook cannot be read by the coordinator."
                )
            }
        case .environment(let name):
            bytes = Array((support.environment[name] ?? "").utf8)
        }
        while let last = bytes.last, last == 0x0A || last == 0x0D { bytes.removeLast() }
        // With an empty key anybody could sign.
        guard !bytes.isEmpty else {
            throw ClientError(.unavailable, "The coordinator has no secret for this webhook.")
        }
        return bytes
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
