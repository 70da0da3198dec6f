internal import OperonModel

/// An operation that a running operation adds to its graph: see ``OperationContext/add(_:)``.
public struct NewOperation: Sendable {
    /// The name, unique in the graph, 1 to 256 bytes.
    public var name: String

    /// The dependencies: operations that are added together with it, operations of the graph, or
    /// operations of another graph as `graph/operation`. The condition of each is the outcomes that
    /// release this operation.
    public var dependencies: [DependencyDescription]

    /// The operation queue, which the graph must have; `nil`: the queue of the operation that adds
    /// this one.
    public var queue: String?

    /// How the operation is run: the same options as for a handle, except that their name is
    /// ignored.
    public var options: OperationOptions

    private let work: Work
    /// The kind, which a worker in this process needs to run the operation.
    private let kind: OperationKind?
    /// Operations that its conditions add.
    private let brought: [AnyOperationHandle]

    /// Creates an operation of a kind that workers have registered.
    ///
    /// - Parameters:
    ///   - operation: The operation to run.
    ///   - name: Its name in the graph.
    ///   - dependencies: The names of operations to wait for; the operation is skipped if one of
    ///     them fails. For other conditions see ``after(_:when:)``.
    ///   - options: How it is run; `nil`: the operation's own options.
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

    /// Creates an operation that runs a process: a program and its arguments. It starts in the
    /// directory where its worker started, unless a directory is given.
    ///
    /// - Parameters:
    ///   - arguments: The program and its arguments.
    ///   - name: Its name in the graph.
    ///   - dependencies: The names of operations to wait for.
    ///   - directory: Where the process starts, and what the paths of its files are relative to.
    ///   - produces: Files that must exist after the process has succeeded; otherwise the attempt
    ///     fails.
    ///   - consumes: Files that must exist before the process starts; otherwise the attempt fails.
    ///   - skipsIfUpToDate: Whether the operation succeeds without a process while every file that
    ///     it produces exists and none is older than a file that it consumes.
    ///   - options: How it is run.
    public init(
        command arguments: [String],
        named name: String,
        after dependencies: [String] = [],
        directory: String? = nil,
        produces: [String] = [],
        consumes: [String] = [],
        skipsIfUpToDate: Bool = false,
        options: OperationOptions = OperationOptions()
    ) {
        work = .command(
            CommandDescription(
                arguments: arguments,
                directory: directory,
                produces: produces,
                consumes: consumes,
                skipsIfUpToDate: skipsIfUpToDate
            )
        )
        kind = nil
        brought = []
        self.name = name
        self.options = options
        self.dependencies = dependencies.map { DependencyDescription($0) }
    }

    /// Returns the operation with further dependencies. If one is named twice, the last condition
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
    /// The description of the operation, after those of the operations that its conditions add. The
    /// same value gives the same result in every attempt.
    ///
    /// - Throws: ``OperonError`` with the code `invalid` for an operation that only the program
    ///   that created it could run.
    func descriptions(queue ownQueue: String) throws -> [OperationDescription] {
        // An operation that two conditions add is added only once.
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

    /// An operation that a condition adds is named after the operation it is for, so that another
    /// attempt finds it again.
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

    /// Registers the kinds that a worker in this process needs.
    func register(_ register: (OperationKind) -> Void) {
        if let kind { register(kind) }
        for member in brought.flatMap(\.members) { member.register(register) }
    }
}
