/// Elements by numbers that are never reused. A dropped element takes four bytes. Read by its
/// number it looks like the absent element, and writes to it are lost.
package struct NumberedTable<Element: Sendable>: Sendable {
    /// The index of each element in `elements`; `absentPlace` for a dropped element.
    @usableFromInline var places: [UInt32] = []
    /// The first is the absent element. So a read is one look-up without a branch, and the compiler
    /// does it without copying the element.
    @usableFromInline var elements: [Element]
    @usableFromInline var freePlaces: [UInt32] = []
    /// Numbers of the elements that are kept, ascending. Dropped ones stay listed until they are
    /// half of the list.
    @usableFromInline var numbers: [UInt32] = []

    @inlinable package static var absentPlace: UInt32 { 0 }

    /// - Parameter absent: what a dropped element looks like.
    @inlinable package init(absent: Element) { elements = [absent] }

    /// One more than the highest number.
    @inlinable package var count: Int { places.count }

    @inlinable package var indices: Range<Int> { 0..<places.count }

    /// How many elements there is room for: the most that were kept at any one time.
    @inlinable package var placeCount: Int { elements.count - 1 }

    @inlinable package var keptCount: Int { placeCount - freePlaces.count }

    /// The numbers of the elements that are kept, ascending. O(elements kept).
    @inlinable package var kept: [Int] {
        numbers.compactMap { isDropped(Int($0)) ? nil : Int($0) }
    }

    /// The highest number that is kept.
    @inlinable package var lastKept: Int? {
        numbers.last { !isDropped(Int($0)) }.map { Int($0) }
    }

    @inlinable package func isDropped(_ number: Int) -> Bool {
        places[number] == Self.absentPlace
    }

    @inlinable package subscript(number: Int) -> Element {
        @inline(__always) _read { yield elements[Int(places[number])] }
        @inline(__always) _modify {
            let place = places[number]
            if place == Self.absentPlace {
                var nothing = elements[Int(Self.absentPlace)]
                yield &nothing
            } else {
                yield &elements[Int(place)]
            }
        }
    }

    package mutating func append(_ element: Element) {
        numbers.append(UInt32(places.count))
        if let place = freePlaces.popLast() {
            places.append(place)
            elements[Int(place)] = element
        } else {
            places.append(UInt32(elements.count))
            elements.append(element)
        }
    }

    /// Removes the last element, whose number is then free.
    package mutating func removeLast() -> Element {
        let place = places.removeLast()
        numbers.removeLast()
        let element = elements[Int(place)]
        free(place)
        return element
    }

    /// Appends an element that was dropped before this table was created.
    package mutating func appendDropped() { places.append(Self.absentPlace) }

    package mutating func drop(_ number: Int) {
        let place = places[number]
        guard place != Self.absentPlace else { return }
        places[number] = Self.absentPlace
        free(place)
        if numbers.count > 2 * keptCount { numbers = kept.map { UInt32($0) } }
    }

    private mutating func free(_ place: UInt32) {
        elements[Int(place)] = elements[Int(Self.absentPlace)]
        freePlaces.append(place)
    }
}
