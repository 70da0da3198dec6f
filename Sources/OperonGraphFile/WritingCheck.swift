import OperonModel

/// What a graph file cannot hold, found before anything is written: what passes is read back as it
/// was, durations to the nanosecond, lists without repetitions, JSON without white space.
struct WritingCheck {
    private let limits: Limits

    init(_ limits: Limits) { self.limits = limits }

    /// - Throws: the first thing that a file cannot hold, with the name of its operation.
    func check(_ graph: GraphDescription) throws(GraphFileError) {
        func refuse(_ thing: String, _ why: String) -> GraphFileError {
            let problem = GraphFileError.Problem(.unsupported, at: .none, thing, why)
            return GraphFileError.unfound(.problem(problem), file: graph.name)
        }
        if !graph.name.isEmpty, let why = refusal(ofName: graph.name) {
            throw refuse(graph.name, "the graph’s name " + why)
        }
        var seen = SeenKeys<Void>()
        for queue in graph.queues {
            let known: Void? = seen.insert(queue.name, ())
            if let why = known == nil ? refusal(of: queue) : "is defined twice" {
                throw refuse(queue.name, "queue \(queue.name.quoted) " + why)
            }
        }
        var seenKeys = SeenKeys<Void>()
        for key in graph.keys {
            let known: Void? = seenKeys.insert(key.name, ())
            if let why = known == nil ? refusal(of: key) : "is defined twice" {
                throw refuse(key.name, "key \(key.name.quoted) " + why)
            }
        }
        for operation in graph.operations {
            if let why = refusal(of: operation) {
                throw refuse(operation.name, "operation \(operation.name.quoted) " + why)
            }
        }
    }

    private func refusal(of queue: QueueSettings) -> String? {
        if let why = refusal(ofName: queue.name) { return "has a name that " + why }
        guard let count = queue.maxConcurrentOperationCount else { return nil }
        return (0...Int(Int32.max)).contains(count) ? nil : "has a limit that no queue may have"
    }

    private func refusal(of key: KeySettings) -> String? {
        if let why = refusal(ofName: key.name) { return "has a name that " + why }
        return (1...Int(Int32.max)).contains(key.limit) ? nil : "has a limit that no key may have"
    }

    /// Why an operation cannot be written, or `nil`.
    private func refusal(of operation: OperationDescription) -> String? {
        if let why = refusal(ofName: operation.name) { return "has a name that " + why }
        if let why = refusal(ofName: operation.queue) { return "has a queue whose name " + why }
        for dependency in operation.dependencies {
            if let why = refusal(ofName: dependency.name) { return "has a dependency that " + why }
        }
        for key in operation.exclusive {
            if let why = refusal(ofName: key) { return "has an exclusive key that " + why }
        }
        if operation.summary.utf8.contains(0) { return "has a NUL character in its description" }
        return refusal(ofDurationsOf: operation) ?? refusal(of: operation.retry)
            ?? refusal(of: operation.work)
    }

    private func refusal(ofDurationsOf operation: OperationDescription) -> String? {
        let durations: [(String, Duration?, isPositive: Bool)] = [
            ("timeout", operation.timeout, true),
            ("expectedDuration", operation.expectedDuration, false),
            ("delay", operation.delay, false),
        ]
        for (key, duration, isPositive) in durations {
            guard let duration, !fits(duration, isPositive: isPositive) else { continue }
            return "has a \(key) of \(duration)"
        }
        return nil
    }

    private func refusal(of retry: RetryPolicy) -> String? {
        guard fits(retry.delay), fits(retry.maxDelay), retry.delay <= retry.maxDelay else {
            return "has a retry whose delays are out of order or out of range"
        }
        guard retry.factor >= 1, retry.factor.isFinite, (0...1).contains(retry.jitter) else {
            return "has a retry whose factor or jitter is out of range"
        }
        return nil
    }

    private func refusal(of work: Work) -> String? {
        switch work {
        case .nothing: return nil
        case .wait(let duration): return fits(duration) ? nil : "waits for \(duration)"
        case .command(let command): return refusal(of: command)
        case .registered(let kind, let input):
            if let why = refusal(ofName: kind) { return "has a kind that " + why }
            guard !Work.reservedKinds.contains(kind) else {
                return "is registered under the name of a built-in kind, \(kind.quoted)"
            }
            return refusal(ofInput: input, isVersioned: true)
        case .external(let input): return refusal(ofInput: input)
        }
    }

    private func refusal(ofInput input: Payload, isVersioned: Bool = false) -> String? {
        var plain = input
        if isVersioned, let version = input.version {
            guard (1...Int(Int32.max)).contains(version),
                input.contentType == Payload.json(version: version)
            else { return "has an input of version \(version)" }
            plain.contentType = Payload.json
        }
        guard plain.isEmpty || isJSON(plain) else { return "has an input that is not JSON" }
        return plain == .empty || !plain.isEmpty ? nil : "has an input that is not JSON"
    }

    private func refusal(of command: CommandDescription) -> String? {
        guard let program = command.arguments.first, !program.isEmpty else {
            return "names no program"
        }
        let texts = command.arguments + [command.directory ?? ""] + command.environment.values
        if texts.contains(where: { $0.utf8.contains(0) }) {
            return "has a NUL character in its command"
        }
        if command.directory == "" { return "has a directory without a name" }
        for name in command.environment.keys where !FieldReader.isVariable(name) {
            return "sets \(name.quoted), which cannot be the name of a variable"
        }
        for name in command.inheritEnvironment {
            if let why = refusal(ofName: name) { return "inherits a variable that " + why }
        }
        if !fits(command.grace) { return "has a grace of \(command.grace)" }
        if let time = command.cpuTime, !fits(time, isPositive: true) {
            return "has a cpuTime of \(time)"
        }
        if let memory = command.memory, memory < 1 { return "has a memory of \(memory)" }
        return nil
    }

    /// What `FieldReader.name` says of it.
    private func refusal(ofName name: String) -> String? {
        if name.isEmpty { return "is empty" }
        if name.utf8.count > limits.nameBytes { return "is over \(limits.nameBytes) bytes long" }
        return FieldReader.hasControl(name) ? "has a control character" : nil
    }

    private func fits(_ duration: Duration, isPositive: Bool = false) -> Bool {
        let least: Duration = isPositive ? .nanoseconds(1) : .zero
        return duration >= least && duration <= .seconds(DurationText.secondsMax)
    }

    /// JSON that is read back as the same value where it stands, within its operation.
    private func isJSON(_ input: Payload) -> Bool {
        guard input.contentType == Payload.json, input.bytes.first != 0xEF else { return false }
        var bounds = TreeBounds(limits)
        bounds.depth -= 1
        var parser = JSONParser(input.bytes, bounds: bounds)
        do {
            _ = try parser.value()
            return parser.isAtEnd() && parser.takeFindings().isEmpty
        } catch {
            return false
        }
    }
}
