/// A binary heap of numbers, each with a key. The key of a number can be changed, and any number
/// can be removed, in O(log count). The heap of swift-collections can do neither.
struct IndexedHeap<Key: Comparable & Sendable>: Sendable {
    struct Entry: Sendable {
        var key: Key
        let number: Int
    }

    /// Where each number stands in a heap; `absent` if it stands in none. Heaps that share no
    /// number can share one of these.
    struct Places: Sendable {
        static var absent: Int { -1 }

        private var places: [Int] = []

        subscript(number: Int) -> Int {
            get { number < places.count ? places[number] : Self.absent }
            set {
                while places.count <= number { places.append(Self.absent) }
                places[number] = newValue
            }
        }
    }

    /// No entry is smaller than that at half its place.
    private(set) var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }

    /// The entry with the smallest key.
    var min: Entry? { entries.first }

    /// Inserts the number, or changes its key.
    mutating func set(_ key: Key, of number: Int, _ places: inout Places) {
        var place = places[number]
        if place == Places.absent {
            place = entries.count
            entries.append(Entry(key: key, number: number))
            places[number] = place
        } else {
            guard entries[place].key != key else { return }
            entries[place].key = key
        }
        settle(place, &places)
    }

    /// Removes the number, which is in this heap.
    mutating func remove(_ number: Int, _ places: inout Places) {
        let place = places[number]
        places[number] = Places.absent
        let last = entries.removeLast()
        guard last.number != number else { return }
        entries[place] = last
        places[last.number] = place
        settle(place, &places)
    }

    /// Moves an entry up or down to where its key belongs.
    private mutating func settle(_ start: Int, _ places: inout Places) {
        var place = start
        while place > 0 {
            let parent = (place - 1) / 2
            guard entries[place].key < entries[parent].key else { break }
            exchange(place, parent, &places)
            place = parent
        }
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2]
            where child < entries.count && entries[child].key < entries[least].key {
                least = child
            }
            guard least != place else { return }
            exchange(place, least, &places)
            place = least
        }
    }

    private mutating func exchange(_ left: Int, _ right: Int, _ places: inout Places) {
        entries.swapAt(left, right)
        places[entries[left].number] = left
        places[entries[right].number] = right
    }
}
