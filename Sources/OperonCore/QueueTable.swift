/// The queues by their numbers. It notes which of them were changed, so that an admission puts only
/// those in line again, and no change can be left out.
struct QueueTable: Sendable, RandomAccessCollection {
    private var states: [QueueState] = []
    private var changes = ChangedNumbers()

    var startIndex: Int { 0 }
    var endIndex: Int { states.count }

    subscript(queue: Int) -> QueueState {
        @inline(__always) _read { yield states[queue] }
        @inline(__always) _modify {
            changes.note(queue)
            yield &states[queue]
        }
    }

    /// Sets a queue, or appends it behind the last.
    mutating func set(_ state: QueueState, at queue: Int) {
        states.set(state, at: queue)
        changes.note(queue)
    }

    /// Takes one of the queues that were changed.
    mutating func takeChanged() -> Int? { changes.take() }

    func isChanged(_ queue: Int) -> Bool { changes.has(queue) }
}

/// A set of small numbers, the last one noted first.
struct ChangedNumbers: Sendable {
    private var numbers: [Int] = []
    private var isNoted: [Bool] = []

    @inline(__always)
    mutating func note(_ number: Int) {
        if number < isNoted.count {
            guard !isNoted[number] else { return }
        } else {
            isNoted.append(contentsOf: repeatElement(false, count: number + 1 - isNoted.count))
        }
        isNoted[number] = true
        numbers.append(number)
    }

    mutating func take() -> Int? {
        guard let number = numbers.popLast() else { return nil }
        isNoted[number] = false
        return number
    }

    func has(_ number: Int) -> Bool { number < isNoted.count && isNoted[number] }
}
