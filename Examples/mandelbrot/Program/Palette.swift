import Glibc

/// A colour of the palette.
struct Colour: Hashable, Sendable {
    var red: UInt8
    var green: UInt8
    var blue: UInt8
}

/// From deep blue over white to amber and back, and black for the set itself.
enum Palette {
    static let count = 64

    static let colours: [Colour] =
        [Colour(red: 0, green: 0, blue: 0)]
        + (1..<count).map { index in
            shade(Double(index - 1) / Double(count - 1))
        }

    /// Once round for every four times as many steps, so that no neighbourhood gets too lively.
    static func colour(of steps: Double) -> UInt8 {
        let turns = log2(1 + steps) / 2
        return UInt8(1 + (turns - turns.rounded(.down)) * Double(count - 1))
    }

    /// Points on the way round, and where they are on it.
    private static let stops: [(place: Double, red: Double, green: Double, blue: Double)] = [
        (0, 10, 20, 80), (0.2, 40, 110, 200), (0.42, 235, 248, 255), (0.64, 255, 170, 20),
        (0.86, 60, 10, 30), (1, 10, 20, 80),
    ]

    private static func shade(_ place: Double) -> Colour {
        let next = stops.firstIndex { $0.place > place } ?? stops.count - 1
        let (from, to) = (stops[next - 1], stops[next])
        let part = (place - from.place) / (to.place - from.place)
        func mix(_ left: Double, _ right: Double) -> UInt8 {
            UInt8(left + (right - left) * part)
        }
        return Colour(
            red: mix(from.red, to.red),
            green: mix(from.green, to.green),
            blue: mix(from.blue, to.blue)
        )
    }
}
