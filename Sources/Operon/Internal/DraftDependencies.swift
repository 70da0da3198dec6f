internal import OperonModel

/// The dependencies of an operation before it is added, in the order in which they were set.
///
/// Most operations have no dependency or one, which takes no memory besides the handle.
enum DraftDependencies {
    typealias Element = (handle: AnyOperationHandle, condition: DependencyCondition)

    case none
    case one(AnyOperationHandle, DependencyCondition)
    case many([Element])

    var isEmpty: Bool {
        if case .none = self { true } else { false }
    }

    var all: [Element] {
        switch self {
        case .none: []
        case .one(let handle, let condition): [(handle, condition)]
        case .many(let elements): elements
        }
    }

    func contains(_ other: AnyOperationHandle) -> Bool {
        switch self {
        case .none: false
        case .one(let handle, _): handle === other
        case .many(let elements): elements.contains { $0.handle === other }
        }
    }

    /// Adds a dependency that is not among them.
    mutating func append(_ handle: AnyOperationHandle, _ condition: DependencyCondition) {
        switch self {
        case .none: self = .one(handle, condition)
        case .one(let first, let its): self = .many([(first, its), (handle, condition)])
        case .many(var elements):
            // Releases the other reference, so that the array is not copied.
            self = .none
            elements.append((handle, condition))
            self = .many(elements)
        }
    }

    /// Adds those that are not among them yet. Takes linear time.
    mutating func append(new others: [AnyOperationHandle], _ condition: DependencyCondition) {
        var known = Set(all.map { ObjectIdentifier($0.handle) })
        for other in others where known.insert(ObjectIdentifier(other)).inserted {
            append(other, condition)
        }
    }

    mutating func remove(_ other: AnyOperationHandle) {
        guard contains(other) else { return }
        let left = all.filter { $0.handle !== other }
        switch left.count {
        case 0: self = .none
        case 1: self = .one(left[0].handle, left[0].condition)
        default: self = .many(left)
        }
    }
}
