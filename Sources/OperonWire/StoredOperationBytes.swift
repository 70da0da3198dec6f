import OperonModel

/// Encodes an `OperationDescription` as Protocol Buffers field by field. A program in whose process
/// the coordinator runs spends much of its time on adding operations, and the generated encoder
/// takes several times as long.
///
/// It writes the same bytes as the generated encoder: fields in the order of their numbers, default
/// values left out unless the field is optional.
struct StoredOperationBytes {
    /// The operation that was written last.
    private var writer = FieldWriter(reserving: 256)

    var bytes: [UInt8] { writer.bytes }

    /// Writes an operation in place of the last one. `false`: it has properties that few operations
    /// have, which only the generated encoder knows.
    mutating func write(_ operation: OperationDescription) -> Bool {
        guard operation.retry == .never, operation.inFlight == nil,
            operation.resources.isEmpty, operation.workers.isEmpty,
            !operation.enforcesResources,
            operation.dependencies.allSatisfy({ $0.resolvedID == nil })
        else { return false }
        switch operation.work {
        case .command, .external: return false
        case .nothing, .wait, .registered: break
        }
        writer.removeAll()
        writer.add(Self.text(OperationField.name), operation.name)
        writer.add(Self.text(OperationField.summary), operation.summary)
        for dependency in operation.dependencies { add(dependency) }
        if operation.queue != QueueSettings.defaultName {
            writer.add(Self.text(OperationField.queue), operation.queue)
        }
        if let priority = operation.priority {
            let number = Int64(priority.rawValue)
            writer.addEvenZero(Self.number(OperationField.priority), number << 1 ^ number >> 63)
        }
        let quality = ProtoQualityOfService(operation.qualityOfService).rawValue
        writer.add(Self.number(OperationField.qualityOfService), UInt64(quality))
        addTime(OperationField.timeout, operation.timeout?.nanoseconds)
        addTime(OperationField.expectedDuration, operation.expectedDuration?.nanoseconds)
        for key in operation.exclusive {
            writer.addEvenEmpty(Self.text(OperationField.exclusive), key)
        }
        add(operation.work)
        addTime(OperationField.delay, operation.delay?.nanoseconds)
        addTime(OperationField.notBefore, operation.notBefore?.nanosecondsSince1970)
        addTime(OperationField.deadline, operation.deadline?.nanosecondsSince1970)
        writer.add(Self.number(OperationField.cancelSiblings), operation.cancelSiblings)
        return true
    }

    private mutating func add(_ dependency: DependencyDescription) {
        let start = writer.beginMessage(Self.text(OperationField.dependencies))
        writer.add(Self.text(DependencyField.name), dependency.name)
        let condition = UInt64(dependency.condition.rawValue)
        writer.add(Self.number(DependencyField.condition), condition)
        writer.add(Self.number(DependencyField.takesElements), dependency.takesElements)
        writer.endMessage(start)
    }

    private mutating func add(_ work: Work) {
        switch work {
        case .nothing: writer.addEmptyMessage(Self.text(OperationField.nothing))
        case .wait(let duration): addTime(OperationField.wait, duration.nanoseconds)
        case .registered(let kind, let input):
            writer.addRegistered(Self.text(OperationField.registered), kind, input)
        // `write` refuses them.
        case .command, .external: return
        }
    }

    private mutating func addTime(_ field: UInt64, _ nanoseconds: Int64?) {
        guard let nanoseconds else { return }
        writer.addEvenZero(Self.number(field), nanoseconds)
    }

    // MARK: - Tags

    private static func number(_ field: UInt64) -> UInt64 { field << 3 }

    /// Of a text, bytes or a message.
    private static func text(_ field: UInt64) -> UInt64 { field << 3 | 2 }
}
