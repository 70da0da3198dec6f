import OperonModel
import Synchronization

extension ProcessRunner {
    /// How an attempt ends for want of a secret.
    enum SecretFailure: Error {
        case failed(OperationError)
        case cancelled
        /// The system had no descriptor, process or memory.
        case short(SystemError)
    }

    func variables(
        of command: CommandDescription,
        _ context: ProcessContext,
        _ attempt: ProcessFiles.Attempt
    ) throws(SpawnFailure) -> [String: String] {
        try ProcessEnvironment.variables(
            of: command,
            context: context,
            worker: configuration.environment,
            files: attempt
        )
    }

    func end(for failure: SecretFailure) -> AttemptEnd {
        switch failure {
        case .failed(let error): .failed(error)
        case .cancelled: .cancelled
        case .short(let error): .notYet(after: missed(error))
        }
    }

    /// The variables of a command with secrets, and what must not appear in its output.
    func variables(
        of command: CommandDescription,
        _ context: ProcessContext,
        _ attempt: ProcessFiles.Attempt,
        _ stop: StopSignal
    ) async throws(SecretFailure) -> ([String: String], SecretMask?) {
        let values = try await secrets(of: command, stop)
        var known = command
        known.environment.merge(values) { _, secret in secret }
        do throws(SpawnFailure) {
            return (try variables(of: known, context, attempt), SecretMask(values.values))
        } catch {
            throw .failed(error.operationError)
        }
    }

    /// The values of the secrets of a command, by variable.
    private func secrets(
        of command: CommandDescription,
        _ stop: StopSignal
    ) async throws(SecretFailure) -> [String: String] {
        var values: [String: String] = [:]
        // Sorted, so that of several missing secrets always the same one is named.
        for (variable, name) in command.secrets.sorted(by: { $0.key < $1.key }) {
            values[variable] = try await secret(name, stop)
        }
        return values
    }

    private func secret(
        _ name: String,
        _ stop: StopSignal
    ) async throws(SecretFailure) -> String {
        // A message of the coordinator was checked, but a name that is used as a path is checked
        // here.
        guard SecretName.isValid(name) else { throw failure(name, "its name is not valid") }
        let places = configuration.secrets
        guard let secretsThread else { throw failure(name, nil) }
        let isOwn = name.hasPrefix(SecretPlaces.ownPrefix)
        for directory in [places.directory, isOwn ? nil : places.credentials] {
            guard let directory else { continue }
            let read = await FileLook.answer(on: secretsThread, stop, within: places.timeout) {
                Result { () throws(SecretValue.Failure) in
                    try SecretValue.value(of: name, in: directory)
                }
            }
            switch read {
            case .found(.success(let value)): return value
            case .found(.failure(.absent)): continue
            case .found(.failure(.short(let error))): throw .short(error)
            case .found(.failure(.unusable(let why))): throw failure(name, why)
            case .stopped: throw .cancelled
            case .timedOut: throw failure(name, "the file system of its file does not answer")
            }
        }
        guard let program = places.program else { throw failure(name, nil) }
        return try await value(of: name, from: program, stop)
    }

    /// - Parameter why: What is wrong with the secret, as a clause; `nil`: there is none.
    private func failure(_ name: String, _ why: String?) -> SecretFailure {
        let worker = configuration.workerName
        let message =
            why.map { "The secret “\(name)” of the worker “\(worker)” cannot be used: \($0)." }
            ?? "The worker “\(worker)” has no secret “\(name)”."
        return .failed(.thrown(type: "secret", message: message, payload: []))
    }

    // MARK: - The program

    /// Asks the program for a value. What it prints on its standard error is reported.
    private func value(
        of name: String,
        from program: String,
        _ stop: StopSignal
    ) async throws(SecretFailure) -> String {
        guard let id = nextID() else { throw .cancelled }
        let files = common.files.attempt(id, hasInputs: false)
        var variables: [String: String] = [:]
        for variable in CommandDescription.defaultInheritEnvironment {
            variables[variable] = configuration.environment[variable]
        }
        // By this variable the guard finds what is left of it.
        variables[ProcessEnvironment.inputs] = files.inputs
        let environment = ProcessEnvironment.lines(variables)
        let printed = SecretOutput()
        let outcome = await withCheckedContinuation { continuation in
            var request = SpawnRequest(
                id: id,
                arguments: [program, name],
                environment: environment,
                path: variables["PATH"] ?? ProcessSpawn.defaultPath,
                directory: nil,
                niceness: 0,
                timeout: configuration.secrets.timeout,
                grace: Self.programGrace,
                limits: ProcessLimits(CommandDescription(arguments: [program])),
                group: nil,
                logBytes: 0,
                outputPath: files.output,
                stopSignal: stop,
                onLog: { printed.add($0) },
                state: configuration.stateDirectory,
                completion: { continuation.resume(returning: $0) }
            )
            request.dumpsNoCore = true
            starts.submit(request)
        }
        for line in printed.errorLines {
            configuration.report("the program for secrets says of “\(name)”: \(line)")
        }
        return try value(of: name, outcome, printed)
    }

    private func value(
        of name: String,
        _ outcome: SpawnRequest.Outcome,
        _ printed: SecretOutput
    ) throws(SecretFailure) -> String {
        let seconds = configuration.secrets.timeout.components.seconds
        let late = "the program for secrets took more than \(seconds) s"
        switch outcome {
        case .stopped: throw .cancelled
        case .short(let error): throw .short(error)
        case .failed(let error): throw failure(name, "the program for secrets: \(error.message)")
        case .timedOut: throw failure(name, late)
        case .ended(let end):
            switch (end.status, end.stopReason) {
            case (_, .request): throw .cancelled
            case (_, .timeout): throw failure(name, late)
            case (.exited(code: 0), nil): break
            case (.exited(let code), nil):
                throw failure(name, "the program for secrets ended with exit code \(code)")
            case (.signaled(let number), nil):
                let signal = SignalName.of(number)
                throw failure(name, "the program for secrets was ended by \(signal)")
            case (.unknown, nil), (nil, nil):
                throw failure(name, "how the program for secrets ended is unknown")
            }
        }
        do throws(SecretValue.Failure) {
            return try SecretValue.value(of: printed.value)
        } catch {
            guard case .unusable(let why) = error else { throw failure(name, nil) }
            throw failure(name, why)
        }
    }

    private static var programGrace: Duration { .seconds(1) }
}

/// What the program for secrets prints: the beginning of both streams, a little more of each than
/// is used.
private final class SecretOutput: Sendable {
    private struct State {
        var value: [UInt8] = []
        var errors: [UInt8] = []
    }

    private let state = Mutex(State())

    private static let errorBytesMax = 4 << 10

    func add(_ piece: PrintedPiece) {
        state.withLock { state in
            switch piece.stream {
            // A newline, and one byte that shows that the value is too long.
            case .output:
                let most = SecretPlaces.valueBytesMax + 2
                state.value += piece.bytes.prefix(most - state.value.count)
            case .error:
                state.errors += piece.bytes.prefix(Self.errorBytesMax - state.errors.count)
            }
        }
    }

    var value: [UInt8] { state.withLock { $0.value } }

    var errorLines: [String] {
        String(decoding: state.withLock { $0.errors }, as: UTF8.self)
            .split(separator: "\n")
            .map { String($0).withoutControls }
    }
}
