import OperonModel
import SwiftProtobuf

// How an attempt ended, and why it failed.

extension ProtoAttemptResult {
    init(_ result: AttemptResult) {
        self.init()
        switch result.end {
        case .succeeded: end = .succeeded(ProtoEmpty())
        case .failed(let error): end = .failed(ProtoOperationError(error))
        case .cancelled: end = .cancelled(ProtoEmpty())
        case .crashed: end = .crashed(ProtoEmpty())
        case .notYet(let pause): end = .notYetNanoseconds(pause.nanoseconds)
        }
        startedAtNanoseconds = result.startedAt.nanoseconds
        endedAtNanoseconds = result.endedAt.nanoseconds
        if result.output != .empty { output = ProtoPayload(result.output) }
        logTail = byteString(result.log.tail)
        logBytesDropped = result.log.missing
        logHead = byteString(result.log.head)
        upToDate = result.isUpToDate
    }
}

extension AttemptResult {
    init(_ proto: ProtoAttemptResult) throws(WireError) {
        let end: AttemptEnd
        switch proto.end {
        case .succeeded: end = .succeeded
        case .failed(let error): end = .failed(try OperationError(error))
        case .cancelled: end = .cancelled
        case .crashed: end = .crashed
        case .notYetNanoseconds(let pause):
            end = .notYet(after: try Check.duration(pause, "result.not_yet"))
        case nil: throw .missing("result.end")
        }
        self.init(
            end: end,
            startedAt: try Check.moment(proto.startedAtNanoseconds, "result.started_at"),
            endedAt: try Check.moment(proto.endedAtNanoseconds, "result.ended_at"),
            output: proto.hasOutput ? Payload(proto.output) : .empty,
            log: KeptLog(
                head: [UInt8](proto.logHead),
                missing: proto.logBytesDropped,
                tail: [UInt8](proto.logTail)
            )
        )
        isUpToDate = proto.upToDate && end == .succeeded
    }
}

extension ProtoOperationError {
    init(_ error: OperationError) {
        self.init()
        switch error {
        case .kindUnknown(let unknown): kind = .kindUnknown(unknown)
        case .thrown(let type, let message, let payload):
            var thrown = ProtoThrown()
            thrown.type = type
            thrown.message = message
            thrown.payload = byteString(payload)
            kind = .thrown(thrown)
        case .exit(let code): kind = .exitCode(code)
        case .signal(let name): kind = .signal(name)
        case .timeout: kind = .timeout(ProtoEmpty())
        case .deadline: kind = .deadline(ProtoEmpty())
        case .workerLost: kind = .workerLost(ProtoEmpty())
        case .inputTooLarge(let bytes, let limit):
            kind = .inputTooLarge(ProtoTooLarge(bytes, limit: limit))
        case .outputTooLarge(let bytes, let limit):
            kind = .outputTooLarge(ProtoTooLarge(bytes, limit: limit))
        case .undecodable(let why): kind = .undecodable(why)
        case .versionUnsupported(let version): kind = .versionUnsupported(version)
        case .conditionFailed(let name): kind = .conditionFailed(name)
        }
    }
}

extension OperationError {
    init(_ proto: ProtoOperationError) throws(WireError) {
        switch proto.kind {
        case .kindUnknown(let kind): self = .kindUnknown(kind)
        case .thrown(let thrown):
            self = .thrown(
                type: thrown.type,
                message: thrown.message,
                payload: [UInt8](thrown.payload)
            )
        case .exitCode(let code): self = .exit(code: code)
        case .signal(let name): self = .signal(name: name)
        case .timeout: self = .timeout
        case .deadline: self = .deadline
        case .workerLost: self = .workerLost
        case .inputTooLarge(let size):
            self = .inputTooLarge(
                bytes: try Check.bytes(size.bytes, "error.input_too_large.bytes"),
                limit: try Check.bytes(size.limit, "error.input_too_large.limit")
            )
        case .outputTooLarge(let size):
            self = .outputTooLarge(
                bytes: try Check.bytes(size.bytes, "error.output_too_large.bytes"),
                limit: try Check.bytes(size.limit, "error.output_too_large.limit")
            )
        case .undecodable(let why): self = .undecodable(why)
        case .versionUnsupported(let version): self = .versionUnsupported(version)
        case .conditionFailed(let name): self = .conditionFailed(name: name)
        case nil:
            // A failure whose reason only a newer worker knows is still a failure. If the event
            // were dropped, its number would be missing forever, and the worker would hold the
            // result forever.
            guard !proto.unknownFields.data.isEmpty else { throw .missing("error.kind") }
            self = .undecodable("it failed for a reason that only a newer version can name")
        }
    }
}

extension ProtoTooLarge {
    /// Sizes are never negative. A negative one was computed wrongly and is sent as 0.
    fileprivate init(_ bytes: Int, limit: Int) {
        self.init()
        self.bytes = UInt64(clamping: bytes)
        self.limit = UInt64(clamping: limit)
    }
}
