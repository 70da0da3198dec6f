import OperonModel

/// Encodes an `OperationDescription` as Protocol Buffers field by field. A program in whose process
/// the coordinator runs spends much of its time on adding operations, and the generated encoder
/// takes several times as long.
///
/// It writes the same bytes as the generated encoder: fields in the order of their numbers, default
/// values left out unless the field is optional.
struct StoredOperationBytes {
    /// The operation that was written last.
    var bytes: [UInt8] = []

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
        bytes.removeAll(keepingCapacity: true)
        add(OperationField.name, operation.name)
        add(OperationField.summary, operation.summary)
        for dependency in operation.dependencies { add(dependency) }
        if operation.queue != QueueSettings.defaultName {
            add(OperationField.queue, operation.queue)
        }
        if let priority = operation.priority {
            let number = Int64(priority.rawValue)
            addNumber(OperationField.priority, UInt64(bitPattern: number << 1 ^ number >> 63))
        }
        let quality = ProtoQualityOfService(operation.qualityOfService).rawValue
        if quality != 0 { addNumber(OperationField.qualityOfService, UInt64(quality)) }
        addTime(OperationField.timeout, operation.timeout?.nanoseconds)
        addTime(OperationField.expectedDuration, operation.expectedDuration?.nanoseconds)
        for key in operation.exclusive { addText(OperationField.exclusive, key) }
        add(operation.work)
        addTime(OperationField.delay, operation.delay?.nanoseconds)
        addTime(OperationField.notBefore, operation.notBefore?.nanosecondsSince1970)
        addTime(OperationField.deadline, operation.deadline?.nanosecondsSince1970)
        if operation.cancelSiblings { addNumber(OperationField.cancelSiblings, 1) }
        return true
    }

    /// Appends the operation that was written last as a field of another message.
    func append(to message: inout [UInt8], as field: UInt64) {
        Self.addVarint(field << 3 | 2, to: &message)
        Self.addVarint(UInt64(bytes.count), to: &message)
        message += bytes
    }

    private mutating func add(_ dependency: DependencyDescription) {
        let condition = UInt64(dependency.condition.rawValue)
        var size = Self.size(ofText: dependency.name)
        if condition != 0 { size += 1 + Self.size(condition) }
        addLength(OperationField.dependencies, size)
        add(DependencyField.name, dependency.name)
        if condition != 0 { addNumber(DependencyField.condition, condition) }
    }

    private mutating func add(_ work: Work) {
        switch work {
        case .nothing: addLength(OperationField.nothing, 0)
        case .wait(let duration): addTime(OperationField.wait, duration.nanoseconds)
        case .registered(let kind, let input):
            let isJSON = input.contentType == Payload.json
            var inputSize = Self.size(ofBytes: input.bytes.count)
            if !isJSON { inputSize += Self.size(ofPresentText: input.contentType) }
            var size = Self.size(ofText: kind)
            let hasInput = !isJSON || !input.isEmpty
            if hasInput { size += 1 + Self.size(UInt64(inputSize)) + inputSize }
            addLength(OperationField.registered, size)
            add(RegisteredField.kind, kind)
            guard hasInput else { return }
            addLength(RegisteredField.input, inputSize)
            if !isJSON { addText(PayloadField.contentType, input.contentType) }
            guard !input.isEmpty else { return }
            addLength(PayloadField.value, input.bytes.count)
            bytes += input.bytes
        // `write` refuses them.
        case .command, .external: return
        }
    }

    // MARK: - Fields

    private mutating func add(_ field: UInt64, _ text: String) {
        if !text.isEmpty { addText(field, text) }
    }

    private mutating func addText(_ field: UInt64, _ text: String) {
        addLength(field, text.utf8.count)
        bytes.append(contentsOf: text.utf8)
    }

    private mutating func addTime(_ field: UInt64, _ nanoseconds: Int64?) {
        guard let nanoseconds else { return }
        addNumber(field, UInt64(bitPattern: nanoseconds))
    }

    private mutating func addNumber(_ field: UInt64, _ value: UInt64) {
        Self.addVarint(field << 3, to: &bytes)
        Self.addVarint(value, to: &bytes)
    }

    private mutating func addLength(_ field: UInt64, _ length: Int) {
        Self.addVarint(field << 3 | 2, to: &bytes)
        Self.addVarint(UInt64(length), to: &bytes)
    }

    private static func addVarint(_ value: UInt64, to bytes: inout [UInt8]) {
        var value = value
        while value > 0x7F {
            bytes.append(UInt8(truncatingIfNeeded: value) | 0x80)
            value >>= 7
        }
        bytes.append(UInt8(value))
    }

    // MARK: - Sizes

    /// Of a number.
    private static func size(_ value: UInt64) -> Int { (70 - (value | 1).leadingZeroBitCount) / 7 }

    // Of a field with a number below 16; 0 if it is left out.

    private static func size(ofText text: String) -> Int {
        text.isEmpty ? 0 : size(ofPresentText: text)
    }

    private static func size(ofPresentText text: String) -> Int {
        1 + size(UInt64(text.utf8.count)) + text.utf8.count
    }

    private static func size(ofBytes count: Int) -> Int {
        count == 0 ? 0 : 1 + size(UInt64(count)) + count
    }
}
