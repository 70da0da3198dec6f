internal import OperonModel

/// What an operation waits for, before it is added, in the order of asking.
///
/// Most wait for nothing or for one other: that takes no memory beside the handle.
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

    /// Of one that is not among them.
    mutating func append(_ handle: AnyOperationHandle, _ condition: DependencyCondition) {
        switch self {
        case .none: self = .one(handle, condition)
        case .one(let first, let its): self = .many([(first, its), (handle, condition)])
        case .many(var elements):
            // Gives up the other reference, so that nothing is copied.
            self = .none
            elements.append((handle, condition))
            self = .many(elements)
        }
    }

    /// Those apart that are among them. Linear, however many.
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
