extension GraphDescription {
    /// Checks that the graph can run as described. Every path into a coordinator calls this, so
    /// that the same mistake gives the same error wherever the coordinator runs.
    ///
    /// - Throws: `invalid`, or `limitExceeded`.
    package func check(_ limits: Limits) throws(Refusal) {
        try LimitName.operationsPerGraph.check(operations.count, limits.operationsPerGraph)
        if !name.isEmpty { try limits.check(name: name, of: "graph") }
        for queue in queues { try queue.check(limits) }
        try Self.checkDistinct(queues.map(\.name), "queue")
        try LimitName.keys.check(keys.count, limits.keys)
        for key in keys { try key.check(limits) }
        try Self.checkDistinct(keys.map(\.name), "key")
        for operation in operations { try operation.check(limits) }
        try checkInFlight()
    }

    /// A group has one limit.
    private func checkInFlight() throws(Refusal) {
        var known: [String: Int] = [:]
        for operation in operations {
            guard let inFlight = operation.inFlight else { continue }
            let first = known[inFlight.group] ?? inFlight.limit
            known[inFlight.group] = first
            guard first != inFlight.limit else { continue }
            throw .invalid(
                field: "inFlight of “\(operation.name)”",
                why: "the group “\(inFlight.group)” has the limit \(first) already"
            )
        }
    }

    private static func checkDistinct(_ names: [String], _ what: String) throws(Refusal) {
        guard names.count > 1 else { return }
        var known: Set<String> = []
        known.reserveCapacity(names.count)
        for name in names where !known.insert(name).inserted {
            throw .invalid(field: "\(what) “\(name)”", why: "it is defined twice")
        }
    }
}

extension QueueSettings {
    package func check(_ limits: Limits) throws(Refusal) {
        try limits.check(name: name, of: "queue")
        try rate?.check("rate of queue “\(name)”")
        guard let maximum = maxConcurrentOperationCount else { return }
        let field = "queue “\(name)”: maxConcurrentOperationCount"
        guard maximum >= 0 else { throw .invalid(field: field, why: "\(maximum) is negative") }
        guard maximum > Limits.concurrencyMax else { return }
        throw .invalid(field: field, why: "\(maximum) is over \(Limits.concurrencyMax)")
    }
}

extension KeySettings {
    package func check(_ limits: Limits) throws(Refusal) {
        try limits.check(name: name, of: "key")
        try rate?.check("rate of key “\(name)”")
        let field = "limit of key “\(name)”"
        guard limit >= 1 else { throw .invalid(field: field, why: "\(limit) is below 1") }
        guard limit > Limits.concurrencyMax else { return }
        throw .invalid(field: field, why: "\(limit) is over \(Limits.concurrencyMax)")
    }
}

extension OperationDescription {
    /// Checks that the operation can run as described, except for the size of its input and for the
    /// existence of its dependencies.
    fileprivate func check(_ limits: Limits) throws(Refusal) {
        try limits.check(name: name, of: "operation")
        for dependency in dependencies {
            try limits.check(name: dependency.name, of: "dependency of “\(name)”")
        }
        try limits.check(name: queue, of: "queue of “\(name)”")
        for key in exclusive { try limits.check(name: key, of: "exclusive of “\(name)”") }
        if let inFlight {
            try limits.check(name: inFlight.group, of: "inFlight of “\(name)”")
            guard (1...Limits.concurrencyMax).contains(inFlight.limit) else {
                let why = "\(inFlight.limit) is not from 1 to \(Limits.concurrencyMax)"
                throw .invalid(field: "inFlight of “\(name)”", why: why)
            }
        }
        if summary.utf8.contains(0) {
            throw .invalid(field: "description of “\(name)”", why: "it has a NUL character")
        }
        try check("timeout", timeout, isPositive: true)
        try check("delay", delay)
        try check("expectedDuration", expectedDuration)
        if retry != .never { try checkRetry() }
        try resources.check(limits, of: "resources of “\(name)”")
        try WorkerRequirement.check(workers, limits, of: "workers of “\(name)”")
        if work.isExternal, !resources.isEmpty || !workers.isEmpty {
            let why = "it is external, so it runs on no worker"
            throw .invalid(field: "resources or workers of “\(name)”", why: why)
        }
        if enforcesResources { try checkEnforcement() }
        switch work {
        case .nothing, .external: break
        case .wait(let duration): try check("wait", duration)
        case .command(let command): try check(command, limits)
        case .registered(let kind, _):
            try limits.check(name: kind, of: "kind of “\(name)”")
            // Graph files make operations of this kind.
            guard Work.reservedKinds.contains(kind), kind != Work.forEachKind else { break }
            throw .invalid(field: "kind of “\(name)”", why: "“\(kind)” is built in")
        }
    }

    private func checkEnforcement() throws(Refusal) {
        let field = "enforce of “\(name)”"
        guard case .command = work else {
            throw .invalid(field: field, why: "only a command can be held to its resources")
        }
        guard resources.hasEnforceable else {
            throw .invalid(field: field, why: "its resources have neither cpus nor memory")
        }
    }

    private func check(
        _ field: String,
        _ duration: Duration?,
        isPositive: Bool = false
    ) throws(Refusal) {
        guard let duration else { return }
        let why: String
        if isPositive, duration < .nanoseconds(1) {
            why = "\(duration) is less than a nanosecond"
        } else if duration < .zero {
            why = "\(duration) is negative"
        } else if duration > Limits.durationMax {
            why = "\(duration) is over \(Limits.durationMax)"
        } else {
            return
        }
        throw .invalid(field: "\(field) of “\(name)”", why: why)
    }

    private func checkRetry() throws(Refusal) {
        try check("delay of retry", retry.delay)
        try check("maxDelay of retry", retry.maxDelay)
        let why: String
        if retry.delay > retry.maxDelay {
            why = "its maxDelay is shorter than its delay"
        } else if !(retry.factor >= 1 && retry.factor.isFinite) {
            why = "its factor, \(retry.factor), must be at least 1"
        } else if !(0...1).contains(retry.jitter) {
            why = "its jitter, \(retry.jitter), must be within 0…1"
        } else {
            return
        }
        throw .invalid(field: "retry of “\(name)”", why: why)
    }

    private func check(_ command: CommandDescription, _ limits: Limits) throws(Refusal) {
        let field = "command of “\(name)”"
        guard let program = command.arguments.first, !program.isEmpty else {
            throw .invalid(field: field, why: "it names no program")
        }
        let texts = command.arguments + [command.directory ?? ""] + command.environment.values
        if texts.contains(where: { $0.utf8.contains(0) }) {
            throw .invalid(field: field, why: "it has a NUL character")
        }
        if command.directory == "" {
            throw .invalid(field: field, why: "its directory has no name")
        }
        // The first one in sorted order, so that the error is always the same.
        if let variable = command.environment.keys.filter({ !Self.isVariable($0) }).min() {
            let why = "\(variable.debugDescription) cannot be the name of a variable"
            throw .invalid(field: field, why: why)
        }
        try command.checkSecrets(of: name)
        for variable in command.inheritEnvironment {
            let field = "inherited variable of “\(name)”"
            try limits.check(name: variable, of: field)
            guard CommandDescription.mayInherit(variable) else {
                let why = "\(variable) is not inherited: \(CommandDescription.ownVariables)"
                throw .invalid(field: field, why: why)
            }
        }
        try check("grace", command.grace)
        try check("cpuTime", command.cpuTime, isPositive: true)
        if let memory = command.memory, memory < 1 {
            throw .invalid(field: "memory of “\(name)”", why: "\(memory) is below 1")
        }
        try checkFiles(of: command, limits)
    }

    private func checkFiles(of command: CommandDescription, _ limits: Limits) throws(Refusal) {
        let count = command.produces.count + command.consumes.count
        try LimitName.operationFiles.check(count, limits.operationFiles)
        try check("produces", command.produces, limits)
        try check("consumes", command.consumes, limits)
        guard command.skipsIfUpToDate, command.produces.isEmpty else { return }
        let why = "it produces no files that could be up to date"
        throw .invalid(field: "skip of “\(name)”", why: why)
    }

    private func check(_ field: String, _ paths: [String], _ limits: Limits) throws(Refusal) {
        for path in paths {
            try LimitName.pathBytes.check(path.utf8.count, limits.pathBytes)
            guard path.isEmpty || path.utf8.contains(0) else { continue }
            let why = path.isEmpty ? "a path is empty" : "a path has a NUL character"
            throw .invalid(field: "\(field) of “\(name)”", why: why)
        }
    }

    /// Whether an environment can have a variable with this name.
    package static func isVariable(_ name: String) -> Bool {
        !name.isEmpty && !name.utf8.contains { $0 == 0 || $0 == 0x3D }
    }
}

extension CommandDescription {
    /// Whether a command may inherit this variable from its worker. Variables that begin with
    /// `OPERON_` configure the worker itself; one of them holds the broker's password.
    package static func mayInherit(_ variable: String) -> Bool {
        !variable.hasPrefix("OPERON_")
    }

    package static let ownVariables = "variables named OPERON_… are the worker's own"
}

extension Limits {
    /// 36,500 days: this fits into 64 bits of nanoseconds, and nobody needs a longer duration.
    package static let durationMax = Duration.seconds(36_500 * 86_400)

    /// The largest limit of a queue or a key: what 32 bits hold in messages and in stores. No
    /// cluster has that many slots.
    package static let concurrencyMax = Int(Int32.max)

    /// Checks that this text can name an operation, a graph, a queue, a kind, a key or a variable.
    ///
    /// - Throws: `invalid`, or `limitExceeded`.
    package func check(name: String, of field: @autoclosure () -> String) throws(Refusal) {
        guard !name.isEmpty else { throw .invalid(field: field(), why: "the name is empty") }
        try LimitName.nameBytes.check(name.utf8.count, nameBytes)
        guard name.hasControl else { return }
        let why = "the name \(name.debugDescription) has a control character"
        throw .invalid(field: field(), why: why)
    }
}

extension LimitName {
    /// - Throws: `limitExceeded`.
    package func check(_ value: Int, _ maximum: Int) throws(Refusal) {
        guard value > maximum else { return }
        throw .limitExceeded(limit: self, value: value, maximum: maximum)
    }
}

extension String {
    /// The text with a space for each control character.
    package var withoutControls: String {
        guard hasControl else { return self }
        return String(decoding: utf8.map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }, as: UTF8.self)
    }

    /// Whether the text contains a control character, which could disturb a terminal.
    package var hasControl: Bool { utf8.contains { $0 < 0x20 || $0 == 0x7F } }
}
