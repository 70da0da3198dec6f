package import OperonModel

/// The operations of a graph in their stored form. An operation is decoded when it is needed: a
/// description takes some hundred bytes and several objects, its stored form only some tens of
/// bytes.
package struct StoredOperations: Sendable {
    /// The properties of a graph besides its operations.
    package struct Header: Sendable {
        package var name = ""
        package var queues: [QueueSettings] = []
        package var keys: [KeySettings] = []
        package var failFast = false
        package var order = OperationOrder.criticalPath
        /// The operation of the same graph that added these operations.
        package var parent: UInt32?

        package init() {}
    }

    /// A run of consecutive operations.
    private struct Piece {
        /// The number of the first operation.
        let first: Int
        /// The index of the body that holds the operations, and where in it they begin.
        let body: Int
        let start: Int
    }

    private var bodies: [[UInt8]] = []
    /// The total size of all pieces in bytes.
    package var byteCount: Int { bodies.reduce(0) { $0 + $1.count } }
    private var pieces: [Piece] = []
    /// Where each operation begins, at the length before its bytes, counted from the start of its
    /// piece.
    private var starts: [UInt32] = []
    private var names = NameIndex()

    package init() {}

    package var count: Int { starts.count }

    /// Appends what `StoreFormat.encode` wrote.
    ///
    /// - Throws: `malformed` or `invalidField`; then nothing is added.
    @discardableResult
    package mutating func append(_ body: [UInt8]) throws(WireError) -> Header {
        var header = Header()
        var pieces: [Piece] = []
        var starts: [UInt32] = []
        var position = 0
        while let bytes = try StoreFormat.piece(of: body, at: position) {
            pieces.append(
                Piece(first: count + starts.count, body: bodies.count, start: bytes.lowerBound)
            )
            var cursor = FieldCursor(bytes)
            while let field = try cursor.next(in: body) {
                switch field.number {
                case GraphField.operations:
                    guard let start = UInt32(exactly: field.start - bytes.lowerBound) else {
                        throw WireError(.tooLarge, "a piece of a stored graph is over 4 GiB")
                    }
                    starts.append(start)
                case GraphField.queues where position == 0:
                    header.queues.append(try StoreFormat.queue(Array(body[field.bytes])))
                case GraphField.keys where position == 0:
                    header.keys.append(try StoreFormat.key(Array(body[field.bytes])))
                case GraphField.name where position == 0:
                    header.name = String(decoding: body[field.bytes], as: UTF8.self)
                case GraphField.failFast where position == 0: header.failFast = field.value != 0
                case GraphField.inOrderOfSubmission where position == 0:
                    header.order = field.value != 0 ? .submission : .criticalPath
                case GraphField.parent where position == 0:
                    header.parent = UInt32(exactly: field.value)
                case _: continue
                }
            }
            position = bytes.upperBound
        }
        self.pieces += pieces
        if self.starts.isEmpty { self.starts = starts } else { self.starts += starts }
        bodies.append(body)
        return header
    }

    // MARK: - One operation

    /// The body that holds an operation, and the range of the operation in it.
    private func place(_ index: Int) throws(WireError) -> (body: Int, bytes: Range<Int>) {
        var low = 0
        var high = pieces.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if pieces[middle].first <= index { low = middle } else { high = middle }
        }
        let piece = pieces[low]
        let start = piece.start + Int(starts[index])
        let bytes = try FieldCursor.bytes(withLengthAt: start, in: bodies[piece.body])
        return (piece.body, bytes)
    }

    /// The operation as it was described.
    ///
    /// - Throws: `malformed` or `invalidField`.
    package func description(of index: Int) throws(WireError) -> OperationDescription {
        let (body, bytes) = try place(index)
        return try StoreFormat.operation(Array(bodies[body][bytes]))
    }

    /// The operation as its worker needs it: dependencies only if it takes their outputs, and
    /// without what only decides when and where it runs. Takes a third of the time.
    ///
    /// - Throws: `malformed` or `invalidField`.
    package func dispatchedDescription(of index: Int) throws(WireError) -> OperationDescription {
        let (place, bytes) = try place(index)
        let body = bodies[place]
        var described = OperationDescription(name: "", work: .nothing)
        var hasWork = false
        var hasDependencies = false
        var mayWantInputs = false
        var cursor = FieldCursor(bytes)
        while let field = try cursor.next(in: body) {
            switch field.number {
            case OperationField.name: described.name = Self.text(body[field.bytes])
            case OperationField.queue where !field.bytes.isEmpty:
                described.queue = Self.text(body[field.bytes])
            case OperationField.dependencies: hasDependencies = true
            case OperationField.qualityOfService:
                described.qualityOfService = try StoreFormat.qualityOfService(field.value)
            case OperationField.timeout:
                described.timeout = .nanoseconds(Int64(bitPattern: field.value))
            case OperationField.nothing:
                described.work = .nothing
                (hasWork, mayWantInputs) = (true, false)
            case OperationField.command, OperationField.commandWithSecrets:
                described.work = .command(
                    try StoreFormat.command(
                        Array(body[field.bytes]),
                        withSecrets: field.number == OperationField.commandWithSecrets
                    )
                )
                (hasWork, mayWantInputs) = (true, true)
            case OperationField.registered:
                described.work = try Self.registered(body, field.bytes)
                (hasWork, mayWantInputs) = (true, true)
            case OperationField.summary, OperationField.priority, OperationField.retry,
                OperationField.expectedDuration, OperationField.exclusive, OperationField.delay,
                OperationField.notBefore, OperationField.deadline, OperationField.cancelSiblings,
                OperationField.inFlight, OperationField.workers:
                continue
            case _: return try description(of: index)
            }
        }
        guard hasWork, !hasDependencies || !mayWantInputs else {
            return try description(of: index)
        }
        return described
    }

    /// Reads the work of a registered kind field by field: the generated decoder takes longer than
    /// the rest of a dispatch. What it would not read in the same way is left to it.
    private static func registered(
        _ body: [UInt8],
        _ bytes: Range<Int>
    ) throws(WireError) -> Work {
        var kind = ""
        var input = Payload.empty
        var cursor = FieldCursor(bytes)
        while let field = try cursor.next(in: body) {
            switch (field.number, field.hasLength) {
            case (RegisteredField.kind, true):
                guard let text = String(validating: body[field.bytes], as: UTF8.self) else {
                    return try StoreFormat.registered(Array(body[bytes]))
                }
                kind = text
            case (RegisteredField.input, true):
                var parts = FieldCursor(field.bytes)
                while let part = try parts.next(in: body) {
                    switch (part.number, part.hasLength) {
                    case (PayloadField.value, true): input.bytes = Array(body[part.bytes])
                    case _: return try StoreFormat.registered(Array(body[bytes]))
                    }
                }
            case _: return try StoreFormat.registered(Array(body[bytes]))
            }
        }
        return .registered(kind: kind, input: input)
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: bytes, as: UTF8.self)
    }

    /// - Throws: `malformed`.
    package func name(of index: Int) throws(WireError) -> String {
        String(decoding: try field(OperationField.name, of: index), as: UTF8.self)
    }

    /// - Throws: `malformed`.
    package func queue(of index: Int) throws(WireError) -> String {
        let name = try field(OperationField.queue, of: index)
        return name.isEmpty ? QueueSettings.defaultName : String(decoding: name, as: UTF8.self)
    }

    /// Whether an operation does nothing itself.
    ///
    /// - Throws: `malformed`.
    package func isNothing(_ index: Int) throws(WireError) -> Bool {
        let (body, bytes) = try place(index)
        var cursor = FieldCursor(bytes)
        while let field = try cursor.next(in: bodies[body]) {
            if field.number == OperationField.nothing { return true }
        }
        return false
    }

    /// The bytes of a field; empty if the operation does not have it.
    private func field(_ number: UInt64, of index: Int) throws(WireError) -> ArraySlice<UInt8> {
        let (body, bytes) = try place(index)
        var cursor = FieldCursor(bytes)
        while let field = try cursor.next(in: bodies[body]) {
            if field.number == number { return bodies[body][field.bytes] }
        }
        return []
    }

    /// Reads the properties that decide when and where an operation runs.
    ///
    /// - Parameter outline: is overwritten. Reusing one value allocates no memory.
    /// - Throws: `malformed` or `invalidField`.
    package func read(_ index: Int, into outline: inout Outline) throws(WireError) {
        let (body, bytes) = try place(index)
        try outline.read(bodies[body], bytes)
        outline.body = body
    }

    /// The properties of an operation that decide when and where it runs.
    package struct Outline: Sendable {
        /// Its dependencies in the order of the description.
        package private(set) var dependencies: [Dependency] = []
        /// Equal for two operations only if they have the same policy.
        package private(set) var policy: [UInt8]
        /// At least the size of its work in a message, in bytes.
        package private(set) var workBytes = 0
        /// Whether its kind can use outputs of dependencies.
        package private(set) var mayWantInputs = false
        fileprivate var body = 0

        package init() { policy = [] }

        package struct Dependency: Sendable {
            /// The place of the name's bytes.
            package let name: Range<Int>
            package let condition: DependencyCondition
            package let resolvedID: OperationID?
            package let takesElements: Bool
        }

        package var wantsInputs: Bool { mayWantInputs && !dependencies.isEmpty }

        fileprivate mutating func read(
            _ body: [UInt8],
            _ bytes: Range<Int>
        ) throws(WireError) {
            dependencies.removeAll(keepingCapacity: true)
            policy.removeAll(keepingCapacity: true)
            workBytes = 0
            mayWantInputs = false
            var cursor = FieldCursor(bytes)
            while let field = try cursor.next(in: body) {
                switch field.number {
                case OperationField.dependencies: try addDependency(body, field.bytes)
                case OperationField.command, OperationField.commandWithSecrets:
                    policy.append(UInt8(field.number))
                    workBytes = field.bytes.count
                    mayWantInputs = true
                case OperationField.registered:
                    try addKind(body, field.bytes)
                    workBytes = field.bytes.count
                    mayWantInputs = true
                // The input of an external operation is sent to no worker.
                case OperationField.external: policy.append(UInt8(field.number))
                case OperationField.name, OperationField.summary: continue
                case _: add(field, body)
                }
            }
        }

        /// Appends the field in its encoded form.
        private mutating func add(_ field: FieldCursor.Field, _ body: [UInt8]) {
            policy.append(UInt8(truncatingIfNeeded: field.number))
            if field.isNumber {
                var value = field.value
                repeat {
                    policy.append(UInt8(value & 0x7F) | (value > 0x7F ? 0x80 : 0))
                    value >>= 7
                } while value > 0
            } else {
                addCounted(body[field.bytes])
            }
        }

        private mutating func addCounted(_ bytes: ArraySlice<UInt8>) {
            for shift in stride(from: 0, to: 32, by: 8) {
                policy.append(UInt8(truncatingIfNeeded: bytes.count >> shift))
            }
            policy += bytes
        }

        private mutating func addKind(
            _ body: [UInt8],
            _ bytes: Range<Int>
        ) throws(WireError) {
            policy.append(UInt8(OperationField.registered))
            var cursor = FieldCursor(bytes)
            while let field = try cursor.next(in: body) {
                if field.number == RegisteredField.kind { addCounted(body[field.bytes]) }
            }
        }

        private mutating func addDependency(
            _ body: [UInt8],
            _ bytes: Range<Int>
        ) throws(WireError) {
            var name = 0..<0
            var raw: UInt64 = 0
            var resolvedID: OperationID?
            var takesElements = false
            var cursor = FieldCursor(bytes)
            while let field = try cursor.next(in: body) {
                if field.number == DependencyField.name { name = field.bytes }
                if field.number == DependencyField.condition { raw = field.value }
                if field.number == DependencyField.takesElements {
                    takesElements = field.value != 0
                }
                if field.number == DependencyField.elsewhere {
                    resolvedID = try Self.place(body, field.bytes)
                }
            }
            guard let raw = UInt8(exactly: raw), let condition = DependencyCondition(rawValue: raw)
            else { throw .invalid("dependency.condition", "is \(raw)") }
            dependencies.append(
                Dependency(
                    name: name,
                    condition: condition,
                    resolvedID: resolvedID,
                    takesElements: takesElements
                )
            )
        }

        private static func place(
            _ body: [UInt8],
            _ bytes: Range<Int>
        ) throws(WireError) -> OperationID {
            var graph: UInt64 = 0
            var index: UInt64 = 0
            var cursor = FieldCursor(bytes)
            while let field = try cursor.next(in: body) {
                if field.number == PlaceField.graph { graph = field.value }
                if field.number == PlaceField.index { index = field.value }
            }
            guard let graph = UInt32(exactly: graph), let index = UInt32(exactly: index) else {
                throw .invalid("dependency.elsewhere", "is \(graph)/\(index)")
            }
            return OperationID(graph: GraphID(rawValue: graph), index: index)
        }
    }

    // MARK: - Names

    /// The number of the operation with this name; `nil` if there is none. The first call reads all
    /// names.
    package mutating func number(of name: String) -> UInt32? {
        let bytes = Array(name.utf8)
        return number(of: bytes[...])
    }

    /// The number of an operation that an outline names.
    package mutating func number(of name: Range<Int>, in outline: Outline) -> UInt32? {
        number(of: bodies[outline.body][name])
    }

    /// The name of another operation, as an outline contains it.
    package func text(_ name: Range<Int>, in outline: Outline) -> String {
        String(decoding: bodies[outline.body][name], as: UTF8.self)
    }

    private mutating func number(of name: ArraySlice<UInt8>) -> UInt32? {
        prepareNames()
        return names.number(hash: NameIndex.hash(name)) { self.name($0) == name }
    }

    /// The bytes of a name; empty if they cannot be read.
    private func name(_ number: UInt32) -> ArraySlice<UInt8> {
        do throws(WireError) {
            return try field(OperationField.name, of: Int(number))
        } catch {
            return []
        }
    }

    private mutating func prepareNames() {
        guard names.count < count else { return }
        // Give up the second reference, so that nothing is copied.
        var names = NameIndex()
        swap(&names, &self.names)
        names.reserve(count) { NameIndex.hash(name($0)) }
        for number in UInt32(names.count)..<UInt32(count) {
            names.append(number, hash: NameIndex.hash(name(number)))
        }
        self.names = names
    }
}

/// Finds operation numbers by the hashes of names, in 8 to 16 bytes per name. It does not hold the
/// names themselves.
private struct NameIndex: Sendable {
    /// Each slot holds a number plus one, or 0 if it is free. At most half of the slots are taken.
    private var slots: [UInt32] = []
    private(set) var count = 0

    /// The hash has another seed in each process, so that nobody can choose names that collide.
    static func hash(_ name: ArraySlice<UInt8>) -> Int {
        var hasher = Hasher()
        hasher.combine(name.count)
        var word: UInt64 = 0
        var count = 0
        for byte in name {
            word = word << 8 | UInt64(byte)
            count += 1
            guard count.isMultiple(of: 8) else { continue }
            hasher.combine(word)
        }
        hasher.combine(word)
        return hasher.finalize()
    }

    func number(hash: Int, where isName: (UInt32) -> Bool) -> UInt32? {
        guard !slots.isEmpty else { return nil }
        var slot = hash & (slots.count - 1)
        while slots[slot] > 0 {
            if isName(slots[slot] - 1) { return slots[slot] - 1 }
            slot = (slot + 1) & (slots.count - 1)
        }
        return nil
    }

    /// Makes room for this many names in total.
    mutating func reserve(_ total: Int, hash: (UInt32) -> Int) {
        guard slots.count < 2 * total else { return }
        var size = 16
        while size < 2 * total { size *= 2 }
        slots = Array(repeating: 0, count: size)
        for number in 0..<UInt32(count) { place(number, hash: hash(number)) }
    }

    mutating func append(_ number: UInt32, hash: Int) {
        place(number, hash: hash)
        count += 1
    }

    private mutating func place(_ number: UInt32, hash: Int) {
        var slot = hash & (slots.count - 1)
        while slots[slot] > 0 { slot = (slot + 1) & (slots.count - 1) }
        slots[slot] = number + 1
    }
}
