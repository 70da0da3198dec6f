import Glibc
import OperonCore
package import OperonModel
import OperonWire

// If an operation's worker died while it ran, its next attempt runs in a child: the same program,
// which runs that one operation and ends. If the child dies, no other operation dies with it.

/// The program that a worker starts as its child: usually the worker's own program.
package struct ChildProgram: Hashable, Sendable {
    /// The file to execute; `nil`: this process's program, even if its file is gone or was
    /// replaced.
    package var path: String?
    /// The arguments after the path.
    package var arguments: [String]
    /// The complete environment: code expects the same variables as in the worker.
    package var environment: [String: String]

    package init(path: String?, arguments: [String], environment: [String: String]) {
        self.path = path
        self.arguments = arguments
        self.environment = environment
    }

    /// This program, with the arguments it was started with.
    package static func own() -> ChildProgram {
        var environment = OwnProcess.environment
        // The child talks to its parent only, not to a broker.
        environment[OwnProcess.brokerVariable] = nil
        return ChildProgram(path: nil, arguments: OwnProcess.arguments, environment: environment)
    }
}

/// How parent and child communicate: the operation and its result are wire messages, in base64, in
/// the two files that every process operation has.
enum ChildConversation {
    /// Set in a child to the process id of its parent. The processes that a child starts inherit
    /// it, but have another parent, so they do not count as children.
    static let marker = "OPERON_CHILD_OF"
    /// The only name in the inputs file.
    static let inputName = "dispatch"
    /// Room in a message for everything beside the payload: names, the text of an error.
    static let overheadBytes = 1 << 20

    /// Any value but zero, which means none.
    private static let reign = Reign(rawValue: 1)
    private static let identity = WorkerIdentity(
        name: "child",
        incarnation: Incarnation(rawValue: 1),
        connection: 1
    )

    /// A message in a file is not subject to the broker's size limit.
    private static func wide(_ limits: Limits) -> Limits {
        var limits = limits
        limits.messageBytes = .max
        return limits
    }

    static func encode(
        _ operation: DispatchedOperation,
        limits: Limits
    ) throws(WireError) -> [UInt8] {
        let envelope = CoordinatorEnvelope(
            reign: reign,
            epoch: operation.held.attempt.epoch,
            sequence: 1,
            sender: .none,
            body: .dispatch(Dispatch(acknowledged: 0, operations: [operation]))
        )
        return try Wire.encode(envelope, limits: wide(limits))
    }

    /// Returns `nil` if the message is not a single operation.
    static func decodeOperation(_ bytes: [UInt8], limits: Limits) -> DispatchedOperation? {
        do throws(WireError) {
            let envelope = try Wire.decodeCoordinator(bytes, limits: wide(limits))
            guard case .dispatch(let dispatch) = envelope.body else { return nil }
            return dispatch.operations.first
        } catch {
            return nil
        }
    }

    static func encode(
        _ result: AttemptResult,
        of held: HeldAttempt,
        limits: Limits
    ) throws(WireError) -> [UInt8] {
        let batch = EventBatch(
            firstNumber: 1,
            sentAt: result.endedAt,
            events: [.finished(held, result)]
        )
        let envelope = WorkerEnvelope(
            reign: reign,
            epoch: held.attempt.epoch,
            sequence: 1,
            sender: identity,
            body: .events(batch)
        )
        return try Wire.encode(envelope, limits: wide(limits))
    }

    /// Returns `nil` if the message is not the result of this attempt.
    static func decodeResult(
        _ bytes: [UInt8],
        of held: HeldAttempt,
        limits: Limits
    ) -> AttemptResult? {
        do throws(WireError) {
            let envelope = try Wire.decodeWorker(bytes, limits: wide(limits))
            guard case .events(let batch) = envelope.body,
                case .finished(held, let result)? = batch.events.first
            else { return nil }
            return result
        } catch {
            return nil
        }
    }
}

// MARK: - In the parent

extension ProcessRunner {
    /// Runs an operation of a registered kind in a child of this process.
    ///
    /// When asked to stop, the child cancels the operation's task and has ten seconds to end, like
    /// a command.
    func run(
        _ operation: DispatchedOperation,
        inChildOf program: ChildProgram,
        variables: [String: String],
        limits: Limits,
        stop: StopSignal,
        onLog: @escaping ProcessOutputHandler
    ) async -> AttemptResult {
        let request: [UInt8]
        do throws(WireError) {
            request = try ChildConversation.encode(operation, limits: limits)
        } catch {
            let now = SystemClock.now()
            let error = OperationError.undecodable(error.message)
            return AttemptResult(end: .failed(error), startedAt: now, endedAt: now)
        }
        var context = ProcessContext(operation, limits: limits)
        context.inputs = [
            NamedInput(
                name: ChildConversation.inputName,
                output: Payload(contentType: Wire.contentType, bytes: request)
            )
        ]
        context.environmentAdditions.merge(variables) { _, new in new }
        context.environmentAdditions[ChildConversation.marker] = String(OwnProcess.id)
        // The limit applies to the output; the file has a message around it, in base64.
        let resultBytes = limits.payloadBytes + ChildConversation.overheadBytes
        context.limits.payloadBytes = resultBytes / 3 * 4 + 8
        context.limits.inputsBytes = .max
        let command = CommandDescription(
            arguments: [program.path ?? OwnProcess.executable] + program.arguments,
            environment: program.environment,
            inheritEnvironment: []
        )
        let process = await run(command, attempt: context, stop: stop, onLog: onLog)
        return Self.result(of: process, for: operation.held, limits: limits)
    }

    /// The child's report counts. If the child ended without a report, it crashed.
    private static func result(
        of process: ProcessResult,
        for held: HeldAttempt,
        limits: Limits
    ) -> AttemptResult {
        var result = process.attempt
        let written = result.output
        result.output = .empty
        switch result.end {
        case .succeeded:
            guard let text = ChildFile.text(inQuotes: written.bytes[...]),
                let bytes = Base64.decode(text),
                let reported = ChildConversation.decodeResult(bytes, of: held, limits: limits)
            else {
                result.end = .crashed
                break
            }
            result.end = reported.end
            result.output = reported.output
        // The child never started, or this worker ended it.
        case .failed where process.status == nil, .failed(.timeout), .cancelled, .notYet: break
        case .failed, .crashed: result.end = .crashed
        }
        return result
    }
}

// MARK: - In the child

/// The actions of a program that a worker started as its child.
package enum ChildWorker {
    /// Whether a worker started this process to run one operation for it.
    package static var isChild: Bool {
        OwnProcess.environment[ChildConversation.marker] == String(OwnProcess.parentID)
    }

    /// Runs the operation for which the process was started, reports to its parent, and ends the
    /// process.
    ///
    /// - Parameter stop: Asks the operation to stop.
    package static func serve(
        _ kinds: RegisteredKinds,
        stop: StopSignal,
        limits: Limits = Limits()
    ) async -> Never {
        OwnProcess.printLines()
        let environment = OwnProcess.environment
        guard let inputs = environment[ProcessEnvironment.inputs],
            let output = environment[ProcessEnvironment.output],
            let file = ChildFile.read(inputs),
            let text = ChildFile.text(inQuotes: ChildFile.value(of: file)),
            let request = Base64.decode(text),
            var operation = ChildConversation.decodeOperation(request, limits: limits)
        else { OwnProcess.end(failed: "the worker's child found no operation to run") }
        // The parent enforces the timeout, because it can also end code that ignores it.
        operation.timeout = nil
        // What the worker gave it is in the environment, as for a command.
        operation.allocation = Allocation(operation.resources, told: environment)
        // The parent keeps the log: everything that this process prints.
        var limits = limits
        limits.logBytes = 0
        let result = await run(operation, kinds, limits, stop: stop)
        do throws(WireError) {
            let bytes = try ChildConversation.encode(result, of: operation.held, limits: limits)
            var report = [UInt8(ascii: "\"")]
            Base64.append(bytes[...], to: &report)
            report.append(UInt8(ascii: "\""))
            guard ChildFile.write(report, to: output) else {
                OwnProcess.end(failed: "the worker's child could not write its result")
            }
        } catch {
            OwnProcess.end(failed: "the worker's child could not report: \(error)")
        }
        OwnProcess.end()
    }

    private static func run(
        _ operation: DispatchedOperation,
        _ kinds: RegisteredKinds,
        _ limits: Limits,
        stop: StopSignal
    ) async -> AttemptResult {
        guard case .registered(let name, let input) = operation.work,
            let kind = kinds[name]
        else {
            // The parent knows the kind, so the file at this path has another program by now.
            let now = SystemClock.now()
            let error = OperationError.kindUnknown(operation.work.kind)
            return AttemptResult(end: .failed(error), startedAt: now, endedAt: now)
        }
        let run = RegisteredRun(
            kind,
            operation,
            input: input,
            threads: kinds.threads,
            limits: limits
        ) { content in
            await ask(content)
        } onLog: { _, bytes in
            OwnProcess.print(bytes)
        }
        return await withCheckedContinuation { continuation in
            run.start(stop: stop) { continuation.resume(returning: $0) }
        }
    }

    /// Sends a request through the parent's socket, as a command does.
    private static func ask(
        _ content: WorkerAgent.RequestContent
    ) async -> WorkerAgent.RequestAnswer.Content {
        guard let client = OperationSocketClient(environment: OwnProcess.environment) else {
            return .ended
        }
        let what = OperationSocketFormat.Request.What(content)
        let call = OperationSocketCall()
        let given = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                do throws(SystemError) {
                    // The answer may take as long as the coordinator is away.
                    try OwnThread.start("operon-ask") {
                        do throws(OperationSocketError) {
                            continuation.resume(returning: try client.ask(what, by: call))
                        } catch {
                            continuation.resume(returning: OperationSocketFormat.Answer.ended)
                        }
                    }
                } catch {
                    continuation.resume(returning: OperationSocketFormat.Answer.ended)
                }
            }
        } onCancel: {
            // As in the worker itself, which then stops waiting.
            if case .wait = content { call.cancel() }
        }
        switch given {
        case .added(let count): return .added(count)
        case .awaited(let outcomes): return .awaited(outcomes)
        case .read(let output): return .read(output)
        case .refused(let refusal): return .refused(refusal)
        case .ended, .unknownToken: return .ended
        case .unreadable(let why): return .refused(.invalid(field: "request", why: why))
        }
    }
}

/// Parses the two files without a JSON parser: each holds one string that this program wrote.
private enum ChildFile {
    /// In `{"name":value}`: the value and anything after it.
    static func value(of object: [UInt8]) -> ArraySlice<UInt8> {
        guard let colon = object.firstIndex(of: UInt8(ascii: ":")) else { return [] }
        return object[(colon + 1)...]
    }

    /// The text between the first quote and the next.
    static func text(inQuotes bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let quote = UInt8(ascii: "\"")
        guard let first = bytes.firstIndex(of: quote),
            let last = bytes[(first + 1)...].firstIndex(of: quote)
        else { return nil }
        return bytes[(first + 1)..<last]
    }

    static func read(_ path: String) -> [UInt8]? {
        let number = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { return nil }
        let file = Descriptor(owning: number)
        var status = stat()
        guard unsafe fstat(file.number, &status) == 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var count = 0
        while count < bytes.count {
            let part = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(number, buffer.baseAddress! + count, buffer.count - count)
            }
            if part < 0, errno == EINTR { continue }
            guard part > 0 else { return nil }
            count += part
        }
        return bytes
    }

    static func write(_ bytes: [UInt8], to path: String) -> Bool {
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(path, flags, 0o600)
        guard number >= 0 else { return false }
        let file = Descriptor(owning: number)
        return OwnProcess.write(bytes, to: file.number)
    }
}
