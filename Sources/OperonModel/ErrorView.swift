/// Why an operation failed, as clients see it. It carries everything that the error carries.
package struct ErrorView: Hashable, Sendable, Codable {
    /// `OperationError.code`.
    package var code: String
    /// A sentence for a person.
    package var message: String
    /// The name of the type of a thrown error.
    package var type: String?
    /// The encoded value of a thrown error, if the value is text, as JSON is.
    package var payload: String?
    /// The encoded value in base64, if it is not text.
    package var payloadBase64: String?
    /// What the error names: a kind, a signal, a version, a condition, or the reason why something
    /// could not be read. For a thrown error: its own message, where `message` is a substitute.
    package var detail: String?
    /// The exit code of a process.
    package var exitCode: Int32?
    /// The actual size of an input or output that was too large, in bytes.
    package var bytes: Int?
    /// The largest size allowed, in bytes.
    package var limit: Int?

    package init(code: String, message: String) {
        self.code = code
        self.message = message
    }

    package init(_ error: OperationError) {
        self.init(code: error.code, message: error.description)
        switch error {
        case .thrown(let type, let text, let payload):
            self.type = type
            if text != message { detail = text }
            show(payload)
        case .kindUnknown(let text), .signal(let text), .undecodable(let text),
            .versionUnsupported(let text), .conditionFailed(let text):
            detail = text
        case .exit(let code): exitCode = code
        case .inputTooLarge(let bytes, let limit), .outputTooLarge(let bytes, let limit):
            self.bytes = bytes
            self.limit = limit
        case .timeout, .deadline, .workerLost: break
        }
    }

    private mutating func show(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        payload = String(validating: bytes, as: UTF8.self)
        guard payload == nil else { return }
        var text: [UInt8] = []
        Base64.append(bytes[...], to: &text)
        payloadBase64 = String(decoding: text, as: UTF8.self)
    }

    /// The approximate size of the texts, without the code, in bytes.
    package var byteCount: Int {
        message.utf8.count + (payload?.utf8.count ?? 0) + (payloadBase64?.utf8.count ?? 0)
    }
}

extension OperationError {
    /// Restores the error that the view was made from. If this version does not know the error, or
    /// an older coordinator described it with fewer fields, the message is kept.
    package init(_ view: ErrorView) {
        let detail = view.detail ?? view.message
        let sizes = (view.bytes ?? 0, view.limit ?? 0)
        switch view.code {
        case "kindUnknown": self = .kindUnknown(detail)
        case "signal": self = .signal(name: detail)
        case "undecodable": self = .undecodable(detail)
        case "versionUnsupported": self = .versionUnsupported(detail)
        case "conditionFailed": self = .conditionFailed(name: detail)
        case "exit": self = .exit(code: view.exitCode ?? 1)
        case "timeout": self = .timeout
        case "deadline": self = .deadline
        case "workerLost": self = .workerLost
        case "inputTooLarge": self = .inputTooLarge(bytes: sizes.0, limit: sizes.1)
        case "outputTooLarge": self = .outputTooLarge(bytes: sizes.0, limit: sizes.1)
        default:
            self = .thrown(
                type: view.type ?? (view.code == "thrown" ? "" : view.code),
                message: detail,
                payload: view.payloadBytes
            )
        }
    }
}

extension ErrorView {
    fileprivate var payloadBytes: [UInt8] {
        if let payload { return Array(payload.utf8) }
        return payloadBase64.flatMap { Base64.decode(Array($0.utf8)[...]) } ?? []
    }
}
