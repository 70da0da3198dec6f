import OperonCore
import OperonModel
import OperonWire

/// The descriptions of a graph's operations: as they were given, or as the bytes that a store
/// keeps. In the second case a description is decoded when it is needed.
struct KeptOperations: Sendable {
    private var described: [OperationDescription]
    /// `nil`: the descriptions are kept as they were given.
    private var stored: StoredOperations?
    /// The numbers of `described` by name, made on first use. Only looked up.
    private var byName: [String: UInt32]?

    init(_ operations: [OperationDescription]) { described = operations }

    init(_ stored: StoredOperations) {
        described = []
        self.stored = stored
    }

    var count: Int { stored?.count ?? described.count }

    /// The memory they take: all stored bytes, or the inputs alone.
    var byteCount: Int {
        stored?.byteCount ?? described.reduce(0) { $0 + $1.work.byteCount }
    }

    /// The description of an operation. If its bytes cannot be decoded, the result has a command
    /// without a program, which no accepted operation has.
    subscript(index: Int) -> OperationDescription {
        guard let stored else { return described[index] }
        do throws(WireError) {
            return try stored.description(of: index)
        } catch {
            return undecodable(index)
        }
    }

    private func undecodable(_ index: Int) -> OperationDescription {
        OperationDescription(
            name: name(of: index),
            work: .command(CommandDescription(arguments: []))
        )
    }

    /// Passes on what a worker needs of the description: see
    /// `StoredOperations.dispatchedDescription`. It is not copied if it is kept as it was given.
    @inline(__always)
    func withDispatched<Value>(
        _ index: Int,
        _ body: (borrowing OperationDescription) -> Value
    ) -> Value {
        guard let stored else { return body(described[index]) }
        do throws(WireError) {
            return body(try stored.dispatchedDescription(of: index))
        } catch {
            return body(undecodable(index))
        }
    }

    func name(of index: Int) -> String {
        guard let stored else { return described[index].name }
        do throws(WireError) { return try stored.name(of: index) } catch { return "\(index)" }
    }

    func queue(of index: Int) -> String {
        guard let stored else { return described[index].queue }
        do throws(WireError) { return try stored.queue(of: index) } catch { return "" }
    }

    func isNothing(_ index: Int) -> Bool {
        guard let stored else { return described[index].work.kind == Work.nothingKind }
        do throws(WireError) { return try stored.isNothing(index) } catch { return false }
    }

    /// The number of the operation with this name. The first call visits all names.
    mutating func number(of name: String) -> UInt32? {
        if stored != nil { return stored?.number(of: name) }
        if let byName { return byName[name] }
        var byName: [String: UInt32] = [:]
        byName.reserveCapacity(described.count)
        for (index, operation) in described.enumerated() { byName[operation.name] = UInt32(index) }
        self.byName = byName
        return byName[name]
    }

    /// The operations whose outputs an operation takes; none if its kind does not use outputs.
    struct Inputs {
        /// Those of the same graph, each once, in ascending order.
        fileprivate(set) var own: [UInt32] = []
        /// Those of other graphs, the same way.
        fileprivate(set) var others: [OperationID] = []
        /// The groups among `own` whose elements' outputs it takes.
        fileprivate(set) var ownGroups: [UInt32] = []
        /// The groups among `others` whose elements' outputs it takes.
        fileprivate(set) var otherGroups: [OperationID] = []

        fileprivate mutating func add(_ number: UInt32, withElements: Bool) {
            own.append(number)
            if withElements { ownGroups.append(number) }
        }

        fileprivate mutating func add(_ other: OperationID, withElements: Bool) {
            others.append(other)
            if withElements { otherGroups.append(other) }
        }

        fileprivate var deduplicated: Inputs {
            var inputs = self
            inputs.own = Self.deduplicated(own)
            inputs.others = Self.deduplicated(others)
            inputs.ownGroups = Self.deduplicated(ownGroups)
            inputs.otherGroups = Self.deduplicated(otherGroups)
            return inputs
        }

        private static func deduplicated<ID: Hashable & Comparable>(_ ids: [ID]) -> [ID] {
            ids.count > 1 ? Set(ids).sorted() : ids
        }
    }

    /// The operations whose outputs an operation takes.
    mutating func inputs(of index: Int) -> Inputs {
        var inputs = Inputs()
        if stored != nil {
            var outline = StoredOperations.Outline()
            do throws(WireError) {
                try stored?.read(index, into: &outline)
            } catch {
                return Inputs()
            }
            guard outline.wantsInputs else { return Inputs() }
            for dependency in outline.dependencies {
                let withElements = dependency.takesElements
                if let other = dependency.resolvedID {
                    inputs.add(other, withElements: withElements)
                } else if let number = stored?.number(of: dependency.name, in: outline) {
                    inputs.add(number, withElements: withElements)
                }
            }
        } else {
            guard described[index].wantsInputs else { return Inputs() }
            for place in described[index].dependencies.indices {
                let withElements = described[index].dependencies[place].takesElements
                if let other = described[index].dependencies[place].resolvedID {
                    inputs.add(other, withElements: withElements)
                } else if let number = number(of: described[index].dependencies[place].name) {
                    inputs.add(number, withElements: withElements)
                }
            }
        }
        return inputs.deduplicated
    }

    /// Appends operations.
    ///
    /// - Parameter body: The same operations as a store keeps them.
    /// - Throws: `WireError` if the bytes cannot be read; then nothing is added.
    mutating func append(
        _ more: [OperationDescription],
        _ body: [UInt8]
    ) throws(WireError) {
        if stored != nil {
            try stored?.append(body)
            return
        }
        let first = described.count
        described += more
        guard byName != nil else { return }
        for (offset, operation) in more.enumerated() {
            byName?[operation.name] = UInt32(first + offset)
        }
    }
}

extension KeptOperations {
    /// Compiles the first operations of a stored graph.
    ///
    /// - Parameter takes: Called once for each pair of an operation and another one whose output it
    ///   takes, with the number of the latter; `nil`: it is in another graph.
    /// - Returns: The operations that take the outputs of the elements of a group.
    /// - Throws: `WireError` or `Refusal` if the stored operations are invalid.
    mutating func assemble(
        _ assembly: inout GraphAssembly,
        _ count: Int,
        takes: (UInt32?) -> Void
    ) throws -> [Int] {
        // Gives up the second reference, so that nothing is copied.
        guard var stored = stored.take() else { return [] }
        defer { self.stored = stored }
        guard count <= stored.count else {
            throw Refusal.invalid(field: "operations", why: "some of them are missing")
        }
        var collecting: [Int] = []
        var policies: [[UInt8]: UInt32] = [:]
        var last: (key: [UInt8], policy: UInt32)?
        var outline = StoredOperations.Outline()
        for index in 0..<count {
            try stored.read(index, into: &outline)
            let policy: UInt32
            if let last, last.key == outline.policy {
                policy = last.policy
            } else {
                if let known = policies[outline.policy] {
                    policy = known
                } else {
                    policy = assembly.policy(of: try stored.description(of: index))
                    policies[outline.policy] = policy
                }
                last = (outline.policy, policy)
            }
            var bytes = outline.workBytes
            // An empty text takes two bytes in the outline, and counts as eight.
            if 4 * bytes > GraphAssembly.littleBytes {
                bytes = try stored.description(of: index).work.byteCount
            }
            assembly.append(policy: policy, byteCount: bytes)
            for dependency in outline.dependencies {
                let number = stored.number(of: dependency.name, in: outline)
                    .flatMap { $0 < count ? $0 : nil }
                if let other = dependency.resolvedID {
                    if outline.mayWantInputs { takes(nil) }
                    // An operation of its own of that name stands for the other one, whose output
                    // counts. It is waited for, as when the graph was submitted.
                    if let number {
                        _ = assembly.depend(on: number, dependency.condition)
                    } else {
                        assembly.depend(on: other, dependency.condition)
                    }
                    continue
                }
                guard let number else {
                    throw Refusal.unknownOperation(
                        name: stored.text(dependency.name, in: outline),
                        namedBy: try stored.name(of: index)
                    )
                }
                let isNew = assembly.depend(on: number, dependency.condition)
                if isNew, outline.mayWantInputs { takes(number) }
            }
            if outline.dependencies.contains(where: \.takesElements) { collecting.append(index) }
        }
        return collecting
    }
}

extension Work {
    /// Whether it stands in for an operation that could not be decoded: see `KeptOperations`.
    var isUnreadable: Bool {
        if case .command(let command) = self { command.arguments.isEmpty } else { false }
    }
}
