package import OperonModel
import SwiftProtobuf

/// Converts what a coordinator stores to bytes and back. Equal values give equal bytes. Bytes that
/// no version of this program wrote give an error, never a trap.
package enum StoreFormat {
    /// The operations in one piece. It is small enough that no piece exceeds what a message may be
    /// decoded from at once, and that a graph of millions is never in memory a second time.
    private static let operationsPerPiece = 10_000

    /// Encodes a graph in pieces, each with its length before it.
    ///
    /// - Parameter parent: the operation of the same graph that added these operations.
    package static func encode(
        _ graph: GraphDescription,
        failFast: Bool,
        parent: UInt32? = nil
    ) throws(WireError) -> [UInt8] {
        var bytes: [UInt8] = []
        var start = 0
        repeat {
            let end = min(start + operationsPerPiece, graph.operations.count)
            // The fields before the operations and those after them: two messages in a row are one
            // message with the fields of both.
            var front = ProtoStoredGraph()
            var back = ProtoStoredGraph()
            if start == 0 {
                front.name = graph.name
                front.queues = graph.queues.map { ProtoStoredQueue($0) }
                back.keys = graph.keys.map { ProtoStoredKey($0) }
                back.failFast = failFast
                back.inOrderOfSubmission = graph.order == .submission
                if let parent { back.parent = parent }
            }
            let lengthAt = bytes.count
            bytes.append(contentsOf: repeatElement(0, count: 8))
            bytes += try serialized(front)
            var operations = FieldWriter(reserving: 64 * (end - start))
            var usual = StoredOperationBytes()
            for place in start..<end {
                let isUsual = usual.write(graph.operations[place])
                operations.addEvenEmpty(
                    GraphField.operations << 3 | 2,
                    isUsual ? usual.bytes : try encodeInGeneral(graph.operations[place])
                )
            }
            bytes += operations.bytes
            bytes += try serialized(back)
            let length = UInt64(bytes.count - lengthAt - 8)
            for place in 0..<8 {
                bytes[lengthAt + place] = UInt8(truncatingIfNeeded: length >> UInt64(8 * place))
            }
            start = end
        } while start < graph.operations.count
        return bytes
    }

    static func encodeInGeneral(_ operation: OperationDescription) throws(WireError) -> [UInt8] {
        try serialized(ProtoStoredOperation(operation))
    }

    /// Decodes what `encode` wrote.
    package static func decodeGraph(
        _ bytes: [UInt8]
    ) throws(WireError) -> (graph: GraphDescription, failFast: Bool, parent: UInt32?) {
        var graph = GraphDescription(name: "")
        var failFast = false
        var parent: UInt32?
        var position = 0
        while let place = try piece(of: bytes, at: position) {
            let piece: ProtoStoredGraph = try parse(Array(bytes[place]))
            if position == 0 {
                graph.name = piece.name
                failFast = piece.failFast
                if piece.inOrderOfSubmission { graph.order = .submission }
                if piece.hasParent { parent = piece.parent }
                for queue in piece.queues { graph.queues.append(try QueueSettings(queue)) }
                for key in piece.keys { graph.keys.append(try KeySettings(key)) }
            }
            for operation in piece.operations {
                graph.operations.append(try OperationDescription(operation))
            }
            position = place.upperBound
        }
        return (graph, failFast, parent)
    }

    /// The range of the message in the piece that begins at `position`; `nil` at the end.
    static func piece(of bytes: [UInt8], at position: Int) throws(WireError) -> Range<Int>? {
        guard position < bytes.count else { return nil }
        let start = position + 8
        guard start <= bytes.count else { throw FieldCursor.cutOff }
        let length = bytes[position..<start].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard let length = Int(exactly: length), length <= bytes.count - start else {
            throw FieldCursor.cutOff
        }
        return start..<start + length
    }

    /// Decodes one operation of a piece.
    static func operation(_ bytes: [UInt8]) throws(WireError) -> OperationDescription {
        let message: ProtoStoredOperation = try parse(bytes)
        return try OperationDescription(message)
    }

    static func command(
        _ bytes: [UInt8],
        withSecrets: Bool
    ) throws(WireError) -> CommandDescription {
        let message: ProtoCommand = try parse(bytes)
        return try CommandDescription(message, withSecrets: withSecrets)
    }

    static func registered(_ bytes: [UInt8]) throws(WireError) -> Work {
        try Work(stored: .registered(try parse(bytes)))
    }

    static func qualityOfService(_ number: UInt64) throws(WireError) -> QualityOfService {
        // A value of an enumeration has 32 bits.
        let number = Int(Int32(truncatingIfNeeded: number))
        return try QualityOfService(
            ProtoQualityOfService(rawValue: number) ?? .UNRECOGNIZED(number)
        )
    }

    /// Decodes one queue of a piece.
    static func queue(_ bytes: [UInt8]) throws(WireError) -> QueueSettings {
        let message: ProtoStoredQueue = try parse(bytes)
        return try QueueSettings(message)
    }

    /// Decodes one key of a piece.
    static func key(_ bytes: [UInt8]) throws(WireError) -> KeySettings {
        let message: ProtoStoredKey = try parse(bytes)
        return try KeySettings(message)
    }

    package static func encode(_ event: ClusterEvent) throws(WireError) -> [UInt8] {
        guard event.error != nil else { return ClusterEventBytes(event).bytes }
        return try encodeInGeneral(event)
    }

    static func encodeInGeneral(_ event: ClusterEvent) throws(WireError) -> [UInt8] {
        try serialized(ProtoClusterEvent(event))
    }

    package static func decodeEvent(_ bytes: [UInt8]) throws(WireError) -> ClusterEvent {
        try ClusterEvent(try parse(bytes))
    }

    private static func serialized(_ message: some Message) throws(WireError) -> [UInt8] {
        do {
            return try message.serializedBytes()
        } catch {
            throw WireError(.tooLarge, "it is over what can be encoded at all: \(error)")
        }
    }

    private static func parse<M: Message>(_ bytes: [UInt8]) throws(WireError) -> M {
        do {
            var options = BinaryDecodingOptions()
            options.messageDepthLimit = Wire.messageDepthMax
            return try M(serializedBytes: bytes, options: options)
        } catch {
            throw WireError(.malformed, "what is stored cannot be read: \(error)")
        }
    }
}

// MARK: - Operations

extension ProtoStoredQueue {
    fileprivate init(_ queue: QueueSettings) {
        self.init()
        name = queue.name
        // The graph compiler refuses a negative limit.
        if let maximum = queue.maxConcurrentOperationCount {
            self.maximum = UInt64(max(0, maximum))
        }
        isSuspended = queue.isSuspended
        priority = Int32(queue.priority.rawValue)
        if let rate = queue.rate { self.rate = ProtoStoredRate(rate) }
    }
}

extension QueueSettings {
    fileprivate init(_ proto: ProtoStoredQueue) throws(WireError) {
        self.init(name: proto.name)
        if proto.hasMaximum {
            maxConcurrentOperationCount = try Check.bytes(proto.maximum, "queue.maximum")
        }
        isSuspended = proto.isSuspended
        priority = try QueuePriority(stored: proto.priority)
        if proto.hasRate { rate = try StartRate(proto.rate) }
    }
}

extension ProtoStoredRate {
    fileprivate init(_ rate: StartRate) {
        self.init()
        // The graph compiler refuses other numbers.
        count = UInt32(clamping: rate.count)
        periodNanoseconds = rate.period.nanoseconds
        burst = UInt32(clamping: rate.burst)
    }
}

extension StartRate {
    fileprivate init(_ proto: ProtoStoredRate) throws(WireError) {
        self.init(
            Int(proto.count),
            per: .nanoseconds(proto.periodNanoseconds),
            burst: Int(proto.burst)
        )
        do throws(Refusal) {
            try check("rate")
        } catch {
            throw .invalid("rate", "is \(proto.count) in \(proto.periodNanoseconds) ns")
        }
    }
}

extension ProtoStoredKey {
    fileprivate init(_ key: KeySettings) {
        self.init()
        name = key.name
        limit = UInt64(max(0, key.limit))
        if let rate = key.rate { self.rate = ProtoStoredRate(rate) }
    }
}

extension KeySettings {
    fileprivate init(_ proto: ProtoStoredKey) throws(WireError) {
        self.init(name: proto.name, limit: try Check.bytes(proto.limit, "key.limit"))
        if proto.hasRate { rate = try StartRate(proto.rate) }
    }
}

extension QueuePriority {
    fileprivate init(stored: Int32) throws(WireError) {
        guard let level = Int8(exactly: stored), let priority = QueuePriority(rawValue: level)
        else { throw .invalid("priority", "is \(stored): it must be -8, -4, 0, 4 or 8") }
        self = priority
    }
}

extension ProtoStoredOperation {
    fileprivate init(_ operation: OperationDescription) {
        self.init()
        name = operation.name
        summary = operation.summary
        dependencies = operation.dependencies.map { dependency in
            var stored = ProtoStoredDependency()
            stored.name = dependency.name
            stored.condition = UInt32(dependency.condition.rawValue)
            stored.takesElements = dependency.takesElements
            if let other = dependency.resolvedID {
                stored.elsewhere.graph = other.graph.rawValue
                stored.elsewhere.index = other.index
            }
            return stored
        }
        if operation.queue != QueueSettings.defaultName { queue = operation.queue }
        if let priority = operation.priority { self.priority = Int32(priority.rawValue) }
        qualityOfService = ProtoQualityOfService(operation.qualityOfService)
        if let timeout = operation.timeout { timeoutNanoseconds = timeout.nanoseconds }
        if operation.retry != .never { retry = ProtoStoredRetry(operation.retry) }
        if let time = operation.expectedDuration { expectedNanoseconds = time.nanoseconds }
        exclusive = operation.exclusive
        cancelSiblings = operation.cancelSiblings
        if let limit = operation.inFlight {
            inFlight.group = limit.group
            inFlight.limit = UInt64(limit.limit)
        }
        resources = operation.resources.all.map { ProtoResourceAmount($0) }
        workers = operation.workers.map { ProtoStoredRequirement($0) }
        enforcesResources = operation.enforcesResources
        if let delay = operation.delay { delayNanoseconds = delay.nanoseconds }
        if let time = operation.notBefore { notBeforeNanoseconds = time.nanosecondsSince1970 }
        if let time = operation.deadline { deadlineNanoseconds = time.nanosecondsSince1970 }
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
        case .external(let input): work = .external(ProtoPayload(input))
        }
    }
}

extension OperationDescription {
    fileprivate init(_ proto: ProtoStoredOperation) throws(WireError) {
        self.init(name: proto.name, work: try Work(stored: proto.work))
        summary = proto.summary
        for dependency in proto.dependencies {
            guard let raw = UInt8(exactly: dependency.condition),
                let condition = DependencyCondition(rawValue: raw)
            else { throw .invalid("dependency.condition", "is \(dependency.condition)") }
            var described = DependencyDescription(dependency.name, condition)
            described.takesElements = dependency.takesElements
            if dependency.hasElsewhere {
                described.resolvedID = OperationID(
                    graph: GraphID(rawValue: dependency.elsewhere.graph),
                    index: dependency.elsewhere.index
                )
            }
            dependencies.append(described)
        }
        if !proto.queue.isEmpty { queue = proto.queue }
        if proto.hasPriority { priority = try QueuePriority(stored: proto.priority) }
        qualityOfService = try QualityOfService(proto.qualityOfService)
        if proto.hasTimeoutNanoseconds { timeout = .nanoseconds(proto.timeoutNanoseconds) }
        if proto.hasRetry { retry = try RetryPolicy(proto.retry) }
        if proto.hasExpectedNanoseconds {
            expectedDuration = .nanoseconds(proto.expectedNanoseconds)
        }
        exclusive = proto.exclusive
        cancelSiblings = proto.cancelSiblings
        if proto.hasInFlight {
            guard let limit = Int(exactly: proto.inFlight.limit) else {
                throw .invalid("operation.in_flight", "is \(proto.inFlight.limit)")
            }
            inFlight = InFlightLimit(group: proto.inFlight.group, limit: limit)
        }
        if !proto.resources.isEmpty {
            resources = try ResourceAmounts(proto.resources, "operation.resources", Limits())
        }
        workers = try proto.workers.map { requirement throws(WireError) in
            try WorkerRequirement(requirement)
        }
        enforcesResources = proto.enforcesResources
        if proto.hasDelayNanoseconds { delay = .nanoseconds(proto.delayNanoseconds) }
        if proto.hasNotBeforeNanoseconds {
            notBefore = WallTime(nanosecondsSince1970: proto.notBeforeNanoseconds)
        }
        if proto.hasDeadlineNanoseconds {
            deadline = WallTime(nanosecondsSince1970: proto.deadlineNanoseconds)
        }
    }
}

extension Work {
    fileprivate init(stored proto: ProtoStoredOperation.OneOf_Work?) throws(WireError) {
        switch proto {
        case .nothing: self = .nothing
        case .waitNanoseconds(let duration): self = .wait(.nanoseconds(duration))
        case .command(let command):
            self = .command(try CommandDescription(command, withSecrets: false))
        case .commandWithSecrets(let command):
            self = .command(try CommandDescription(command, withSecrets: true))
        case .registered(let registered):
            self = .registered(
                kind: registered.kind,
                input: registered.hasInput ? Payload(registered.input) : .empty
            )
        case .external(let input): self = .external(input: Payload(input))
        case nil: throw .missing("operation.work")
        }
    }
}

extension ProtoStoredRetry {
    fileprivate init(_ retry: RetryPolicy) {
        self.init()
        limit = UInt32(retry.limit)
        delayNanoseconds = retry.delay.nanoseconds
        factor = retry.factor
        maxDelayNanoseconds = retry.maxDelay.nanoseconds
        jitter = retry.jitter
    }
}

extension RetryPolicy {
    fileprivate init(_ proto: ProtoStoredRetry) throws(WireError) {
        guard let limit = UInt16(exactly: proto.limit) else {
            throw .invalid("retry.limit", "is \(proto.limit)")
        }
        // The graph compiler refuses other numbers, and a pause cannot be computed with them.
        guard proto.factor.isFinite else { throw .invalid("retry.factor", "is \(proto.factor)") }
        guard proto.jitter.isFinite else { throw .invalid("retry.jitter", "is \(proto.jitter)") }
        self.init(
            limit: limit,
            delay: .nanoseconds(proto.delayNanoseconds),
            factor: proto.factor,
            maxDelay: .nanoseconds(proto.maxDelayNanoseconds),
            jitter: proto.jitter
        )
    }
}

// MARK: - Cluster events

extension ProtoClusterEvent {
    fileprivate init(_ event: ClusterEvent) {
        self.init()
        atNanoseconds = UInt64(bitPattern: event.at.nanosecondsSince1970)
        kind = UInt32(event.kind.rawValue)
        if let graph = event.graph { self.graph = graph.rawValue }
        if let operation = event.operation { index = operation.index }
        if let outcome = event.outcome { self.outcome = UInt32(outcome.rawValue) + 1 }
        if let attempt = event.attempt {
            attemptEpoch = attempt.epoch.rawValue
            attemptNumber = attempt.number
        }
        if let ending = event.ending { self.ending = UInt32(ending.rawValue) }
        if let error = event.error { self.error = ProtoOperationError(error) }
        if let worker = event.worker { self.worker = worker.rawValue }
        workerName = event.workerName
        queue = event.queue
        by = event.by
        reason = event.reason
        key = event.key
        upToDate = event.isUpToDate
        count = event.count ?? 0
        trigger = event.trigger
        firing = event.firing ?? 0
    }
}

extension ClusterEvent {
    fileprivate init(_ proto: ProtoClusterEvent) throws(WireError) {
        guard let raw = UInt8(exactly: proto.kind), let kind = Kind(rawValue: raw) else {
            throw .missing("event.kind")
        }
        let at = Int64(bitPattern: proto.atNanoseconds)
        self.init(kind, at: WallTime(nanosecondsSince1970: at))
        if proto.hasGraph { graph = GraphID(rawValue: proto.graph) }
        if proto.hasGraph, proto.hasIndex {
            operation = OperationID(graph: GraphID(rawValue: proto.graph), index: proto.index)
        }
        if let raw = UInt8(exactly: proto.outcome), raw > 0 {
            outcome = OutcomeKind(rawValue: raw - 1)
        }
        if proto.attemptNumber > 0 {
            attempt = AttemptID(
                epoch: Epoch(rawValue: proto.attemptEpoch),
                number: proto.attemptNumber
            )
        }
        ending = UInt8(exactly: proto.ending).flatMap { Ending(rawValue: $0) }
        if proto.hasError { error = try OperationError(proto.error) }
        if proto.worker != 0 { worker = Incarnation(rawValue: proto.worker) }
        workerName = proto.workerName
        queue = proto.queue
        by = proto.by
        reason = proto.reason
        key = proto.key
        isUpToDate = proto.upToDate
        count = proto.count > 0 ? proto.count : nil
        trigger = proto.trigger
        firing = proto.firing > 0 ? proto.firing : nil
    }
}
