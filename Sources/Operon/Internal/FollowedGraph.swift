internal import OperonModel

/// The handles of one graph that wait for their outcomes.
struct FollowedGraph {
    /// By the index of the operation.
    private(set) var handles: ContiguousArray<AnyOperationHandle?> = []
    /// Further handles of operations that already have one.
    private var more: [UInt32: [AnyOperationHandle]] = [:]
    private(set) var waiting = 0
    /// Outcomes that arrived before the answer that gives the operations their indices.
    private var early: [UInt32: EndedOperation] = [:]

    var earlyCount: Int { early.count }

    mutating func append(_ handle: AnyOperationHandle, at index: UInt32) {
        let place = Int(index)
        if place >= handles.count {
            handles.append(contentsOf: repeatElement(nil, count: place - handles.count))
            handles.append(handle)
        } else if handles[place] == nil {
            handles[place] = handle
        } else {
            more[index, default: []].append(handle)
        }
        waiting += 1
    }

    func handle(at index: UInt32) -> AnyOperationHandle? {
        guard Int(index) < handles.count, let handle = handles[Int(index)] else { return nil }
        return handle.runsHere ? handle : more[index]?.first { $0.runsHere } ?? handle
    }

    func forEach(_ body: (AnyOperationHandle) -> Void) {
        for handle in handles { handle.map(body) }
        // Handles are independent, so their order does not matter.
        for handles in more.values { handles.forEach(body) }
    }

    mutating func takeEarly(from first: UInt32, to end: UInt32) -> [EndedOperation] {
        guard !early.isEmpty else { return [] }
        let taken = early.values.filter { (first..<end).contains($0.id.index) }
            .sorted { $0.id < $1.id }
        // Earlier ones belong to operations that running operations added; nobody here waits for
        // them.
        early = early.filter { $0.key >= end }
        return taken
    }

    /// Discards early outcomes when no operation that they could belong to is being added.
    mutating func dropEarly() { early = [:] }

    mutating func take(
        _ ended: EndedOperation,
        isEarly: Bool,
        _ body: (AnyOperationHandle) -> Void
    ) {
        let place = Int(ended.id.index)
        guard place < handles.count, let handle = handles[place] else {
            if isEarly { early[ended.id.index] = ended }
            return
        }
        handles[place] = nil
        waiting -= 1
        body(handle)
        guard !more.isEmpty else { return }
        for handle in more.removeValue(forKey: ended.id.index) ?? [] {
            waiting -= 1
            body(handle)
        }
    }

    func isOver(isOpen: Bool) -> Bool { waiting == 0 && !isOpen && early.isEmpty }

    var unfinished: [UInt32] {
        handles.indices.compactMap { handles[$0] == nil ? nil : UInt32($0) }
    }
}
