import OperonModel

// Neither an operation's results nor a worker's reports of them can be trusted. So both the worker
// and the coordinator apply the limits to them, so that they fit the messages and rows that carry
// them.
extension AttemptResult {
    /// The same result within the limits. An output that is too large turns a success into a
    /// failure; an error, a log and a pause are cut.
    func bounded(by limits: Limits) -> AttemptResult {
        var result = self
        if output.bytes.count > limits.payloadBytes {
            let error = OperationError.outputTooLarge(
                bytes: output.bytes.count,
                limit: limits.payloadBytes
            )
            result.giveUpOutput(because: error)
        } else if output.contentType.utf8.count > limits.nameBytes {
            let why = "the type of its output has \(output.contentType.utf8.count) bytes"
            result.giveUpOutput(because: .undecodable(why))
        }
        result.log = log.bounded(to: limits.logBytes)
        result.log.missing = min(result.log.missing, KeptLog.missingMax)
        switch result.end {
        case .failed(let error): result.end = .failed(error.bounded(by: limits))
        case .notYet(let pause):
            result.end = .notYet(after: min(max(pause, .zero), Limits.durationMax))
        case .succeeded, .cancelled, .crashed: break
        }
        if result.end != .succeeded { result.isUpToDate = false }
        return result
    }

    private mutating func giveUpOutput(because error: OperationError) {
        output = .empty
        if end == .succeeded { end = .failed(error) }
    }
}

extension OperationError {
    /// The most bytes of each text: a long message and its stack.
    private static var textBytes: Int { 64 << 10 }

    fileprivate func bounded(by limits: Limits) -> OperationError {
        func cut(_ text: String) -> String { text.cut(toBytes: Self.textBytes) }
        switch self {
        case .kindUnknown(let kind): return .kindUnknown(cut(kind))
        case .thrown(let type, let message, let payload):
            return .thrown(
                type: cut(type),
                message: cut(message),
                // Half of a payload means nothing.
                payload: payload.count <= limits.payloadBytes ? payload : []
            )
        case .signal(let name): return .signal(name: cut(name))
        case .undecodable(let why): return .undecodable(cut(why))
        case .versionUnsupported(let version): return .versionUnsupported(cut(version))
        case .conditionFailed(let name): return .conditionFailed(name: cut(name))
        case .exit, .timeout, .deadline, .workerLost, .inputTooLarge, .outputTooLarge:
            return self
        }
    }
}
