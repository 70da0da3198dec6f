internal import OperonModel

/// An operation that a running one adds to its graph: see ``OperationContext/add(_:)``.
public struct NewOperation: Sendable {
    /// Its name, unique in the graph, 1 to 256 bytes.
    public var name: String

    /// What it waits for: others that are added with it, or any of the graph, or of another one as
    /// `graph/operation`; and by which of its outcomes each lets it go.
    public var dependencies: [DependencyDescription]

    /// The operation queue that it belongs to, which its graph has; `nil`: that of the operation
    /// that adds it.
    public var queue: String?

    /// How it is to be run: what a handle may be given, too. The name in them does not count.
    public var options: OperationOptions

    private let work: Work
    /// What a worker in this process needs to run it.
    private let kind: OperationKind?
    /// Operations that its own conditions bring.
    private let brought: [AnyOperationHandle]

    /// An operation of a kind that workers have registered.
    ///
    /// - Parameters:
    ///   - operation: What to do.
    ///   - name: Its name in the graph.
    ///   - dependencies: Names of what it waits for, unless it fails: see ``after(_:when:)``.
    ///   - options: How it is to be run; `nil`: as the operation itself says.
    /// - Throws: ``OperonError`` with the code `invalid` if its input cannot be encoded.
    public init<Op: Operation>(
        _ operation: Op,
        named name: String,
        after dependencies: [String] = [],
        options: OperationOptions? = nil
    ) throws {
        let input: Payload
        do {
            input = try Payload(operation: operation)
        } catch {
            throw OperonError(.invalid, "The input of “\(name)” cannot be encoded: \(error)")
        }
        work = .registered(kind: Op.kind, input: input)
        kind = OperationKind(any: Op.self)
        brought = operation.conditions.compactMap { $0.dependency() }
        self.name = name
        self.options = options ?? operation.options
        self.dependencies = dependencies.map { DependencyDescription($0) }
    }

    /// A process: the program and its arguments. It starts where its worker started, unless a
    /// directory is named.
    public init(
        command arguments: [String],
        named name: String,
        after dependencies: [String] = [],
        directory: String? = nil,
        options: OperationOptions = OperationOptions()
    ) {
        work = .command(CommandDescription(arguments: arguments, directory: directory))
        kind = nil
        brought = []
        self.name = name
        self.options = options
        self.dependencies = dependencies.map { DependencyDescription($0) }
    }

    /// Waits for others as well, in one expression. Of one that is named twice, the last condition
    /// counts.
    public func after(
        _ names: String...,
        when condition: DependencyCondition = .unlessFailed
    ) -> NewOperation {
        var new = self
        for name in names {
            new.dependencies.removeAll { $0.name == name }
            new.dependencies.append(DependencyDescription(name, condition))
        }
        return new
    }
}

// MARK: - As it is sent

extension NewOperation {
    /// Itself, behind what its conditions bring. The same value gives the same, in every attempt.
    ///
    /// - Throws: ``OperonError`` with the code `invalid` for what only the program could run that
    ///   has made it.
    func descriptions(queue ownQueue: String) throws -> [OperationDescription] {
        // One that two conditions brought is added once.
        var known: Set<ObjectIdentifier> = []
        let members = brought.flatMap(\.members).filter {
            known.insert(ObjectIdentifier($0)).inserted
        }
        var names: [ObjectIdentifier: String] = [:]
        for (place, member) in members.enumerated() {
            names[ObjectIdentifier(member)] = "\(name)~\(place + 1)"
        }
        var descriptions: [OperationDescription] = []
        for member in members {
            descriptions.append(try description(of: member, ownQueue, names))
        }
        var own = OperationDescription(name: name, work: work)
        own.queue = queue ?? ownQueue
        options.apply(to: &own, qualityOfService: .default)
        own.dependencies = dependencies
        for handle in brought {
            guard let name = names[ObjectIdentifier(handle)] else { continue }
            own.dependencies.append(DependencyDescription(name))
        }
        return descriptions + [own]
    }

    /// What a condition brought is known by the name of what it is for, so that another attempt
    /// finds it again.
    private func description(
        of handle: AnyOperationHandle,
        _ ownQueue: String,
        _ names: [ObjectIdentifier: String]
    ) throws -> OperationDescription {
        guard !handle.runsHere, let name = names[ObjectIdentifier(handle)] else {
            let message = "A condition of “\(name)” needs a block of the program that adds it."
            throw OperonError(.invalid, message)
        }
        var description = OperationDescription(name: name, work: try handle.work())
        description.queue = queue ?? ownQueue
        description.cancelSiblings = handle.cancelsSiblings
        handle.options.apply(to: &description, qualityOfService: .default)
        for (other, condition) in handle.draftDependencies {
            guard let otherName = names[ObjectIdentifier(other)] else {
                let message = "What a condition of “\(self.name)” needs depends on another program."
                throw OperonError(.invalid, message)
            }
            description.dependencies.append(DependencyDescription(otherName, condition))
        }
        return description
    }

    /// What a worker in this process has to know.
    func register(_ register: (OperationKind) -> Void) {
        if let kind { register(kind) }
        for member in brought.flatMap(\.members) { member.register(register) }
    }
}
