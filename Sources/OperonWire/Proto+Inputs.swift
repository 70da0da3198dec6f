import OperonModel

// The inputs of an operation. Usually there is one entry for each dependency. If there are very
// many, only dependencies with an output have an entry, and one field holds the names of the
// others.

/// Inputs in the form in which they are sent.
struct PackedInputs {
    /// Up to this many inputs, each has an entry. Older workers understand only entries.
    static let entriesMax = 1_024

    var entries: [ProtoNamedInput]
    /// The names of the inputs without an entry: see `without_output` in operon.proto.
    var names: [UInt8]

    init(_ entries: [ProtoNamedInput], names: [UInt8]) {
        self.entries = entries
        self.names = names
    }

    init(_ inputs: [NamedInput]) {
        self.init([], names: [])
        guard inputs.count > Self.entriesMax else {
            entries = inputs.map { ProtoNamedInput($0) }
            return
        }
        var entriesBetween = 0
        for input in inputs {
            guard input.output == nil, input.reference == nil, !input.isDropped else {
                entries.append(ProtoNamedInput(input))
                entriesBetween += 1
                continue
            }
            append(entriesBetween)
            append(input.name.utf8.count)
            names += input.name.utf8
            entriesBetween = 0
        }
    }

    /// Appends the number as a varint.
    private mutating func append(_ number: Int) {
        var rest = UInt64(number)
        while rest > 0x7F {
            names.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        names.append(UInt8(rest))
    }

    /// All inputs in their order.
    func unpacked(_ limits: Limits) throws(WireError) -> [NamedInput] {
        guard !names.isEmpty else {
            return try entries.map { entry throws(WireError) in
                try NamedInput(entry, limits: limits)
            }
        }
        var inputs: [NamedInput] = []
        var left = entries[...]
        var cursor = FieldCursor(names.indices)
        while let (between, name) = try cursor.nextName(in: names) {
            guard between <= left.count else {
                throw .invalid("operation.without_output", "names entries that are not there")
            }
            for entry in left.prefix(between) {
                inputs.append(try NamedInput(entry, limits: limits))
            }
            left = left.dropFirst(between)
            // Each name takes memory. The limit is the one that applied when the operation was
            // accepted.
            guard inputs.count < limits.operationsPerGraph else {
                throw .invalid("operation.without_output", "has more names than a graph has")
            }
            let text = String(decoding: names[name], as: UTF8.self)
            inputs.append(
                NamedInput(
                    name: try Check.name(text, "input.name", limits: limits),
                    output: nil
                )
            )
        }
        for entry in left { inputs.append(try NamedInput(entry, limits: limits)) }
        return inputs
    }
}

extension ProtoNamedInput {
    init(_ input: NamedInput) {
        self.init()
        name = input.name
        if let output = input.output { self.output = ProtoPayload(output) }
        if let reference = input.reference { self.reference = ProtoOutputReference(reference) }
        dropped = input.isDropped
    }
}

extension NamedInput {
    init(_ proto: ProtoNamedInput, limits: Limits) throws(WireError) {
        self.init(
            name: try Check.name(proto.name, "input.name", limits: limits),
            output: proto.hasOutput ? Payload(proto.output) : nil,
            reference: proto.hasReference ? try OutputReference(proto.reference) : nil
        )
        guard output == nil || reference == nil else {
            throw .invalid("input.reference", "is there beside the output itself")
        }
        isDropped = proto.dropped
        guard !isDropped || output == nil && reference == nil else {
            throw .invalid("input.dropped", "is said of an output that is there")
        }
    }
}
