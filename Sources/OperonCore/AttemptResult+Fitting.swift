import OperonModel

// What an attempt reports comes from the code that ran: it is cut to what a message carries. An
// event that no message carries would be sent again for ever, and its operation would never end.
extension AttemptResult {
    /// Bytes of each text of an error: its reader wants the beginning.
    static let errorTextBytes = 64 << 10

    /// The same within the limits. An output that is too large fails its operation.
    func fitting(_ limits: Limits) -> AttemptResult {
        var result = self
        if result.output.bytes.count > limits.payloadBytes {
            result.end = .failed(
                .outputTooLarge(bytes: result.output.bytes.count, limit: limits.payloadBytes)
            )
            result.output = .empty
        } else if result.output.contentType.utf8.count > limits.nameBytes {
            let bytes = result.output.contentType.utf8.count
            result.end = .failed(
                .undecodable("the content type of its output has \(bytes) bytes")
            )
            result.output = .empty
        }
        if result.logTail.count > limits.logBytes {
            let dropped = result.logTail.count - limits.logBytes
            result.logTail.removeFirst(dropped)
            result.logBytesDropped &+= UInt64(dropped)
        }
        if case .failed(let error) = result.end {
            result.end = .failed(error.fitting(limits))
        }
        return result
    }
}

extension OperationError {
    fileprivate func fitting(_ limits: Limits) -> OperationError {
        let bytes = AttemptResult.errorTextBytes
        switch self {
        case .kindUnknown(let kind): return .kindUnknown(kind.beginning(bytes))
        case .thrown(let type, let message, let payload):
            return .thrown(
                type: type.beginning(bytes),
                message: message.beginning(bytes),
                // A part of it could not be decoded.
                payload: payload.count > limits.payloadBytes ? [] : payload
            )
        case .signal(let name): return .signal(name: name.beginning(bytes))
        case .undecodable(let why): return .undecodable(why.beginning(bytes))
        case .versionUnsupported(let version):
            return .versionUnsupported(version.beginning(bytes))
        case .conditionFailed(let name): return .conditionFailed(name: name.beginning(bytes))
        case .exit, .timeout, .deadline, .workerLost, .inputTooLarge, .outputTooLarge:
            return self
        }
    }
}

extension String {
    /// At most so many bytes of it, and a mark if that is not all.
    fileprivate func beginning(_ bytes: Int) -> String {
        guard utf8.count > bytes else { return self }
        var end = utf8.index(startIndex, offsetBy: bytes)
        while end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
        return String(self[..<end]) + "…"
    }
}
