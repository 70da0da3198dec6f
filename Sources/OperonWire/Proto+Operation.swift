import OperonModel

// A dispatch: operations with everything that their worker needs.

extension ProtoDispatch {
    init(_ dispatch: Dispatch) {
        self.init()
        acknowledged = dispatch.acknowledged
        operations = dispatch.operations.map { ProtoDispatchedOperation($0) }
    }
}

extension Dispatch {
    /// If an operation cannot be decoded but its attempt can, it is set aside with the reason, and
    /// its worker ends it `failed(undecodable)`. If it were dropped, the coordinator would resend
    /// it forever.
    init(_ proto: ProtoDispatch, limits: Limits) throws(WireError) {
        guard !proto.operations.isEmpty else {
            throw .invalid("dispatch.operations", "is empty")
        }
        self.init(acknowledged: proto.acknowledged, operations: [])
        operations.reserveCapacity(proto.operations.count)
        for operation in proto.operations {
            guard operation.hasHeld else { throw .missing("operation.held") }
            let held = try HeldAttempt(operation.held, "operation.held")
            do throws(WireError) {
                operations.append(
                    try DispatchedOperation(operation, held: held, limits: limits)
                )
            } catch {
                unreadable.append(UnreadableOperation(held: held, why: error.message))
            }
        }
    }
}

// MARK: - One operation

extension ProtoDispatchedOperation {
    init(_ operation: DispatchedOperation) {
        self.init()
        held = ProtoHeldAttempt(operation.held)
        ordinal = operation.ordinal
        graphName = operation.graphName
        name = operation.name
        queue = operation.queue
        priority = Int32(operation.priority.rawValue)
        rank = operation.rank
        if let timeout = operation.timeout { timeoutNanoseconds = timeout.nanoseconds }
        qualityOfService = ProtoQualityOfService(operation.qualityOfService)
        isIsolated = operation.isIsolated
        announcesStart = operation.announcesStart
        isRepeat = operation.isRepeat
        traceParent = operation.traceParent
        if let lease = operation.exclusiveLease { exclusiveLeaseNanoseconds = lease.nanoseconds }
        resources = operation.resources.all.map { ProtoResourceAmount($0) }
        isEnforced = operation.isEnforced
        if !operation.inputs.isEmpty {
            let packed = PackedInputs(operation.inputs)
            inputs = packed.entries
            if !packed.names.isEmpty { withoutOutput = byteString(packed.names) }
        }
        switch operation.work {
        case .nothing: work = .nothing(ProtoEmpty())
        case .wait(let duration): work = .waitNanoseconds(duration.nanoseconds)
        case .command(let command):
            let proto = ProtoCommand(command)
            work = command.secrets.isEmpty ? .command(proto) : .commandWithSecrets(proto)
        case .registered(let kind, let input):
            var registered = ProtoRegistered()
            registered.kind = kind
            if input != .empty { registered.input = ProtoPayload(input) }
            work = .registered(registered)
        // No worker ever gets an external operation. Without work, a worker would return it as
        // undecodable.
        case .external: work = nil
        }
    }
}

extension DispatchedOperation {
    fileprivate init(
        _ proto: ProtoDispatchedOperation,
        held: HeldAttempt,
        limits: Limits
    ) throws(WireError) {
        guard
            let level = Int8(exactly: proto.priority),
            let priority = QueuePriority(rawValue: level)
        else {
            throw .invalid(
                "operation.priority",
                "is \(proto.priority): it must be -8, -4, 0, 4 or 8"
            )
        }
        var timeout: Duration?
        if proto.hasTimeoutNanoseconds {
            timeout = try Check.duration(proto.timeoutNanoseconds, "operation.timeout")
        }
        var exclusiveLease: Duration?
        if proto.hasExclusiveLeaseNanoseconds {
            exclusiveLease = try Check.interval(
                proto.exclusiveLeaseNanoseconds,
                "operation.exclusive_lease"
            )
        }
        self.init(
            held: held,
            ordinal: try Check.ordinal(proto.ordinal, "operation.ordinal"),
            graphName: try Check.label(proto.graphName, "operation.graph_name", limits: limits),
            name: try Check.name(proto.name, "operation.name", limits: limits),
            queue: try Check.name(proto.queue, "operation.queue", limits: limits),
            work: try Work(proto.work, limits: limits),
            priority: priority,
            rank: proto.rank,
            timeout: timeout,
            qualityOfService: try QualityOfService(proto.qualityOfService),
            inputs: try PackedInputs(proto.inputs, names: [UInt8](proto.withoutOutput))
                .unpacked(limits),
            isIsolated: proto.isIsolated,
            announcesStart: proto.announcesStart,
            exclusiveLease: exclusiveLease,
            traceParent: try Check.label(
                proto.traceParent,
                "operation.trace_parent",
                limits: limits
            )
        )
        isRepeat = proto.isRepeat
        resources = try ResourceAmounts(proto.resources, "operation.resources", limits)
        isEnforced = proto.isEnforced
        guard isEnforced else { return }
        guard case .command = work, resources.hasEnforceable else {
            throw .invalid("operation.is_enforced", "is set without a command, cpus and memory")
        }
    }
}

extension ProtoQualityOfService {
    init(_ quality: QualityOfService) {
        switch quality {
        case .default: self = .default
        case .background: self = .background
        case .utility: self = .utility
        case .userInitiated: self = .userInitiated
        case .userInteractive: self = .userInteractive
        }
    }
}

extension QualityOfService {
    init(_ proto: ProtoQualityOfService) throws(WireError) {
        switch proto {
        case .default: self = .default
        case .background: self = .background
        case .utility: self = .utility
        case .userInitiated: self = .userInitiated
        case .userInteractive: self = .userInteractive
        case .UNRECOGNIZED(let value):
            throw .invalid(
                "operation.quality_of_service",
                "is \(value), which this version does not know"
            )
        }
    }
}

// MARK: - Work

extension Work {
    fileprivate init(
        _ proto: ProtoDispatchedOperation.OneOf_Work?,
        limits: Limits
    ) throws(WireError) {
        switch proto {
        case .nothing: self = .nothing
        case .waitNanoseconds(let duration):
            self = .wait(try Check.duration(duration, "operation.wait"))
        case .command(let command):
            self = .command(try CommandDescription(command, withSecrets: false))
        case .commandWithSecrets(let command):
            self = .command(try CommandDescription(command, withSecrets: true))
        case .registered(let registered):
            self = .registered(
                kind: try Check.name(registered.kind, "operation.kind", limits: limits),
                input: registered.hasInput ? Payload(registered.input) : .empty
            )
        case nil: throw .missing("operation.work")
        }
    }
}

extension ProtoCommand {
    init(_ command: CommandDescription) {
        self.init()
        arguments = command.arguments
        // A dictionary has a different order in every process, but the bytes must be the same.
        environment = command.environment.map { name, value in
            var variable = ProtoVariable()
            variable.name = name
            variable.value = value
            return variable
        }
        environment += command.secrets.map { name, secret in
            var variable = ProtoVariable()
            variable.name = name
            variable.secret = secret
            return variable
        }
        environment.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        inheritEnvironment = command.inheritEnvironment
        if let directory = command.directory { self.directory = directory }
        graceNanoseconds = command.grace.nanoseconds
        if let memory = command.memory { memoryBytes = UInt64(clamping: memory) }
        if let cpuTime = command.cpuTime { cpuTimeNanoseconds = cpuTime.nanoseconds }
        produces = command.produces
        consumes = command.consumes
        skipUpToDate = command.skipsIfUpToDate
    }
}

extension CommandDescription {
    /// - Parameter withSecrets: Whether it stood where commands with secrets stand.
    init(_ proto: ProtoCommand, withSecrets: Bool) throws(WireError) {
        try self.init(proto)
        guard secrets.isEmpty == withSecrets else { return }
        throw .invalid("command.environment", "has \(withSecrets ? "no" : "a") secret")
    }

    private init(_ proto: ProtoCommand) throws(WireError) {
        guard !proto.arguments.isEmpty else {
            throw .invalid("command.arguments", "is empty: there is no program to run")
        }
        let (environment, secrets) = try Self.variables(proto.environment)
        self.init(
            arguments: proto.arguments,
            environment: environment,
            inheritEnvironment: proto.inheritEnvironment,
            directory: proto.hasDirectory ? proto.directory : nil,
            grace: try Check.duration(proto.graceNanoseconds, "command.grace")
        )
        self.secrets = secrets
        if proto.hasMemoryBytes {
            memory = try Check.bytes(
                try Check.ordinal(proto.memoryBytes, "command.memory"),
                "command.memory"
            )
        }
        if proto.hasCpuTimeNanoseconds {
            cpuTime = try Check.interval(proto.cpuTimeNanoseconds, "command.cpu_time")
        }
        produces = try Self.paths(proto.produces, "command.produces")
        consumes = try Self.paths(proto.consumes, "command.consumes")
        skipsIfUpToDate = proto.skipUpToDate
    }

    /// The values and the names of secrets, by the names of the variables.
    private static func variables(
        _ variables: [ProtoVariable]
    ) throws(WireError) -> (values: [String: String], secrets: [String: String]) {
        let field = "command.environment"
        var (values, secrets): ([String: String], [String: String]) = ([:], [:])
        values.reserveCapacity(variables.count)
        for variable in variables {
            let isNew: Bool
            if variable.secret.isEmpty {
                isNew =
                    values.updateValue(variable.value, forKey: variable.name) == nil
                    && secrets[variable.name] == nil
            } else {
                guard SecretName.isValid(variable.secret), variable.value.isEmpty,
                    SecretName.mayBeValue(of: variable.name)
                else { throw .invalid(field, "has a variable whose secret is not valid") }
                isNew =
                    secrets.updateValue(variable.secret, forKey: variable.name) == nil
                    && values[variable.name] == nil
            }
            guard !isNew else { continue }
            // The name may have millions of bytes and the message is sent back and stored, so cut
            // it.
            let name = String(variable.name.unicodeScalars.prefix(64))
            throw .invalid(field, "sets “\(name)” twice")
        }
        guard secrets.count <= SecretName.countMax else {
            throw .invalid(field, "has \(secrets.count) secrets; \(SecretName.countMax) may be")
        }
        return (values, secrets)
    }

    /// An empty path or one with a NUL character would mean another file to the system.
    private static func paths(
        _ paths: [String],
        _ field: String
    ) throws(WireError) -> [String] {
        guard !paths.contains(where: { $0.isEmpty || $0.utf8.contains(0) }) else {
            throw .invalid(field, "has a path that is empty or has a NUL character")
        }
        return paths
    }
}
