import OperonModel
import SwiftProtobuf

// A dispatch, written and read without generated types. Proto+Operation.swift has the same for all
// forms of a dispatch.

// MARK: - To bytes

extension FieldWriter {
    mutating func addDispatch(_ dispatch: Dispatch) throws {
        let start = beginMessage(EnvelopeTag.dispatch)
        add(DispatchTag.acknowledged, dispatch.acknowledged)
        for place in dispatch.operations.indices { try addOperation(dispatch.operations[place]) }
        endMessage(start)
    }

    private mutating func addOperation(_ operation: DispatchedOperation) throws {
        typealias Tag = DispatchedOperationTag
        let start = beginMessage(DispatchTag.operations)
        addHeld(Tag.held, operation.held)
        add(Tag.ordinal, operation.ordinal)
        add(Tag.graphName, operation.graphName)
        add(Tag.name, operation.name)
        add(Tag.queue, operation.queue)
        add(Tag.priority, Self.zigzag(operation.priority))
        add(Tag.rank, operation.rank)
        if let timeout = operation.timeout { addEvenZero(Tag.timeout, timeout.nanoseconds) }
        let quality = ProtoQualityOfService(operation.qualityOfService)
        add(Tag.qualityOfService, UInt64(quality.rawValue))
        let namesWithoutOutput = try addInputs(operation.inputs)
        try addWork(operation.work)
        if let lease = operation.exclusiveLease {
            addEvenZero(Tag.exclusiveLease, lease.nanoseconds)
        }
        add(Tag.isIsolated, operation.isIsolated)
        add(Tag.announcesStart, operation.announcesStart)
        add(Tag.isRepeat, operation.isRepeat)
        for resource in operation.resources.all {
            let start = beginMessage(Tag.resources)
            add(ResourceAmountTag.name, resource.name)
            add(ResourceAmountTag.amount, UInt64(clamping: resource.amount))
            endMessage(start)
        }
        add(Tag.isEnforced, operation.isEnforced)
        add(Tag.traceParent, operation.traceParent)
        add(Tag.withoutOutput, namesWithoutOutput)
        if case .command(let command) = operation.work, !command.secrets.isEmpty {
            try addGenerated(Tag.commandWithSecrets, ProtoCommand(command))
        }
        endMessage(start)
    }

    /// Small numbers of either sign as small numbers without one.
    private static func zigzag(_ priority: QueuePriority) -> UInt64 {
        let level = priority.rawValue
        return UInt64(UInt8(bitPattern: level << 1 ^ level >> 7))
    }

    /// - Returns: the names of the inputs that are not among those that were added.
    private mutating func addInputs(_ inputs: [NamedInput]) throws -> [UInt8] {
        guard inputs.count <= PackedInputs.entriesMax else {
            let packed = PackedInputs(inputs)
            for entry in packed.entries { try addGenerated(DispatchedOperationTag.inputs, entry) }
            return packed.names
        }
        for input in inputs {
            let start = beginMessage(DispatchedOperationTag.inputs)
            add(NamedInputTag.name, input.name)
            if let output = input.output { addPayload(NamedInputTag.output, output) }
            if let reference = input.reference {
                try addGenerated(NamedInputTag.reference, ProtoOutputReference(reference))
            }
            add(NamedInputTag.dropped, input.isDropped)
            endMessage(start)
        }
        return []
    }

    private mutating func addWork(_ work: Work) throws {
        typealias Tag = DispatchedOperationTag
        switch work {
        case .nothing: addEmptyMessage(Tag.nothing)
        case .wait(let duration): addEvenZero(Tag.wait, duration.nanoseconds)
        // Starting its process takes a thousand times as long.
        case .command(let command) where command.secrets.isEmpty:
            try addGenerated(Tag.command, ProtoCommand(command))
        // It has a higher number, so it comes last.
        case .command: break
        case .registered(let kind, let input): addRegistered(Tag.registered, kind, input)
        // No worker ever gets an external operation.
        case .external: break
        }
    }
}

// MARK: - From bytes

extension FieldReader {
    mutating func dispatch(_ limits: Limits) throws(WireError) -> Dispatch {
        var dispatch = Dispatch(acknowledged: 0, operations: [])
        let outer = try enter()
        var last: UInt64 = 0
        while let tag = try nextTag(after: &last) {
            switch tag {
            case DispatchTag.acknowledged: dispatch.acknowledged = try number()
            case DispatchTag.operations:
                if dispatch.operations.isEmpty {
                    dispatch.operations.reserveCapacity(try count(of: tag))
                }
                dispatch.operations.append(try operation(limits))
                last = tag - 1
            case _: throw Self.irregular
            }
        }
        leave(outer)
        guard !dispatch.operations.isEmpty else { throw Self.irregular }
        return dispatch
    }

    private mutating func operation(_ limits: Limits) throws(WireError) -> DispatchedOperation {
        typealias Tag = DispatchedOperationTag
        let outer = try enter()
        var last: UInt64 = 0
        // The attempt has the lowest number, and an operation without one is invalid.
        guard try nextTag(after: &last) == Tag.held else { throw Self.irregular }
        var operation = DispatchedOperation(
            held: try held(),
            ordinal: 0,
            graphName: "",
            name: "",
            queue: "",
            work: .nothing,
            priority: .normal,
            rank: 0,
            timeout: nil,
            qualityOfService: .default,
            inputs: []
        )
        var hasWork = false
        var resources: [ProtoResourceAmount] = []
        while let tag = try nextTag(after: &last) {
            switch tag {
            case Tag.ordinal: operation.ordinal = try number32()
            case Tag.graphName: operation.graphName = try text()
            case Tag.name: operation.name = try text()
            case Tag.queue: operation.queue = try text()
            case Tag.priority: operation.priority = try priority()
            case Tag.rank: operation.rank = try number()
            case Tag.timeout: operation.timeout = try Check.duration(try signed(), "")
            case Tag.qualityOfService: operation.qualityOfService = try qualityOfService()
            case Tag.inputs:
                operation.inputs.append(try input(limits))
                last = tag - 1
            case Tag.nothing, Tag.wait, Tag.command, Tag.registered, Tag.commandWithSecrets:
                guard !hasWork else { throw Self.irregular }
                operation.work = try work(tag, limits)
                hasWork = true
            case Tag.exclusiveLease:
                operation.exclusiveLease = try Check.interval(try signed(), "")
            case Tag.isIsolated: operation.isIsolated = try flag()
            case Tag.announcesStart: operation.announcesStart = try flag()
            case Tag.isRepeat: operation.isRepeat = try flag()
            case Tag.resources:
                resources.append(try resource())
                last = tag - 1
            case Tag.isEnforced: operation.isEnforced = try flag()
            case Tag.traceParent: operation.traceParent = try text()
            case _: throw Self.irregular
            }
        }
        leave(outer)
        guard hasWork else { throw Self.irregular }
        if !resources.isEmpty { operation.resources = try ResourceAmounts(resources, "", limits) }
        try check(operation, limits)
        return operation
    }

    /// Checks the fields whose types have room for more than is valid.
    private func check(_ operation: DispatchedOperation, _ limits: Limits) throws(WireError) {
        _ = try Check.ordinal(operation.ordinal, "")
        _ = try Check.label(operation.graphName, "", limits: limits)
        _ = try Check.name(operation.name, "", limits: limits)
        _ = try Check.name(operation.queue, "", limits: limits)
        _ = try Check.label(operation.traceParent, "", limits: limits)
        guard operation.isEnforced else { return }
        guard case .command = operation.work, operation.resources.hasEnforceable else {
            throw Self.irregular
        }
    }

    private mutating func priority() throws(WireError) -> QueuePriority {
        guard
            let encoded = UInt8(exactly: try number()),
            let priority = QueuePriority(
                rawValue: Int8(bitPattern: encoded >> 1) ^ -Int8(bitPattern: encoded & 1)
            )
        else { throw Self.irregular }
        return priority
    }

    private mutating func qualityOfService() throws(WireError) -> QualityOfService {
        guard let quality = ProtoQualityOfService(rawValue: Int(try number32())) else {
            throw Self.irregular
        }
        return try QualityOfService(quality)
    }

    private mutating func work(_ tag: UInt64, _ limits: Limits) throws(WireError) -> Work {
        typealias Tag = DispatchedOperationTag
        switch tag {
        case Tag.nothing:
            try skipEmptyMessage()
            return .nothing
        case Tag.wait: return .wait(try Check.duration(try signed(), ""))
        case Tag.command, Tag.commandWithSecrets:
            let command: ProtoCommand = try generated(depth: 3)
            return .command(
                try CommandDescription(command, withSecrets: tag == Tag.commandWithSecrets)
            )
        case _: return try registered(limits)
        }
    }

    private mutating func registered(_ limits: Limits) throws(WireError) -> Work {
        var kind = ""
        var input = Payload.empty
        let outer = try enter()
        var last: UInt64 = 0
        while let tag = try nextTag(after: &last) {
            switch tag {
            case RegisteredTag.kind: kind = try text()
            case RegisteredTag.input: input = try payload()
            case _: throw Self.irregular
            }
        }
        leave(outer)
        return .registered(kind: try Check.name(kind, "", limits: limits), input: input)
    }

    private mutating func input(_ limits: Limits) throws(WireError) -> NamedInput {
        var input = NamedInput(name: "", output: nil)
        let outer = try enter()
        var last: UInt64 = 0
        while let tag = try nextTag(after: &last) {
            switch tag {
            case NamedInputTag.name: input.name = try text()
            case NamedInputTag.output: input.output = try payload()
            case NamedInputTag.reference:
                let reference: ProtoOutputReference = try generated(depth: 4)
                input.reference = try OutputReference(reference)
            case NamedInputTag.dropped: input.isDropped = try flag()
            case _: throw Self.irregular
            }
        }
        leave(outer)
        _ = try Check.name(input.name, "", limits: limits)
        let isAlone = input.output == nil && input.reference == nil
        guard isAlone || !input.isDropped, input.output == nil || input.reference == nil else {
            throw Self.irregular
        }
        return input
    }

    private mutating func resource() throws(WireError) -> ProtoResourceAmount {
        var resource = ProtoResourceAmount()
        let outer = try enter()
        var last: UInt64 = 0
        while let tag = try nextTag(after: &last) {
            switch tag {
            case ResourceAmountTag.name: resource.name = try text()
            case ResourceAmountTag.amount: resource.amount = try number()
            case _: throw Self.irregular
            }
        }
        leave(outer)
        return resource
    }
}
