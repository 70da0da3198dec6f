import OperonHTTP
import Testing

/// Which connections may stay.
@Suite struct ConnectionTableTests {
    private typealias Table = ConnectionTable

    private static let start = ContinuousClock.now
    /// When whoever came at the start and has said nothing counts as silent.
    private static let later = start + .seconds(2)

    private func made(_ total: Int, perAddress: Int = 100, reserve: Int = 0) -> Table {
        Table(
            Table.Bounds(
                total: total,
                perAddress: perAddress,
                reserve: reserve,
                firstRequest: .seconds(1)
            )
        )
    }

    /// One more connection, and whose place it took.
    private func open(
        _ table: inout Table,
        from address: String? = "a",
        at now: ContinuousClock.Instant = start
    ) throws -> (id: Table.ID, instead: Table.ID?) {
        guard case .admitted(let id, let instead) = table.open(from: address, at: now) else {
            throw Refused()
        }
        return (id, instead)
    }

    private struct Refused: Error {}

    @Test func `those who say nothing give up their places, the oldest first`() throws {
        var table = made(2)
        let first = try open(&table).id
        let second = try open(&table).id
        #expect(try open(&table).instead == first)
        #expect(try open(&table).instead == second)
        #expect(table.count == 2)
    }

    @Test func `one that asked before stays longer than one that never did`() throws {
        var table = made(2)
        let kept = try open(&table).id
        #expect(table.asks(kept, forHealth: false) == true)
        table.waits(kept)
        let silent = try open(&table).id
        let next = try open(&table, at: Self.later)
        #expect(next.instead == silent)
        #expect(table.asks(next.id, forHealth: false) == true)
        #expect(try open(&table).instead == kept)
    }

    @Test func `those who come together do not push each other out while others are idle`()
        throws
    {
        var table = made(3)
        let idle = try (0..<2).map { _ in
            let id = try open(&table).id
            #expect(table.asks(id, forHealth: false) == true)
            table.waits(id)
            return id
        }
        let silent = try open(&table).id
        let crowd = try (0..<3).map { _ in try open(&table, at: Self.later) }
        #expect(crowd.map(\.instead) == [silent] + idle)
        // Only when nobody else is left does the first of them make room.
        #expect(try open(&table, at: Self.later).instead == crowd[0].id)
    }

    @Test func `one that is being answered is never closed for another one`() throws {
        var table = made(2)
        for _ in 0..<2 {
            let id = try open(&table).id
            #expect(table.asks(id, forHealth: false) == true)
        }
        #expect(table.open(from: "a", at: Self.start) == .refused)
        #expect(table.open(from: "b", at: Self.start) == .refused)
        #expect(table.count == 2)
    }

    @Test func `one address takes no more than its part`() throws {
        var table = made(10, perAddress: 2)
        let first = try open(&table, from: "a").id
        let second = try open(&table, from: "a").id
        #expect(try open(&table, from: "a").instead == first)
        #expect(try open(&table, from: "b").instead == nil)
        #expect(table.asks(second, forHealth: false) == true)
        // A socket that is a file has no address, and no such part.
        for _ in 0..<7 { #expect(try open(&table, from: nil).instead == nil) }
        #expect(table.count == 10)
    }

    @Test func `the reserve is for health, and for everything once there is room`() throws {
        var table = made(1, reserve: 1)
        let busy = try open(&table).id
        #expect(table.asks(busy, forHealth: false) == true)
        let spare = try open(&table).id
        #expect(table.asks(spare, forHealth: false) == false)
        #expect(table.asks(spare, forHealth: true) == true)
        table.waits(spare)
        // Whoever is silent in it makes room there, too.
        let other = try open(&table)
        #expect(other.instead == spare)
        table.close(busy)
        #expect(table.asks(other.id, forHealth: false) == true)
        #expect(table.count == 1)
        #expect(try open(&table).instead == nil)
    }

    @Test func `what is closed twice, or was closed for another, counts once`() throws {
        var table = made(1)
        let first = try open(&table).id
        let second = try open(&table)
        #expect(second.instead == first)
        table.close(first)
        #expect(table.count == 1)
        #expect(table.asks(first, forHealth: true) == false)
        table.close(second.id)
        table.close(second.id)
        #expect(table.count == 0)
        #expect(try open(&table).instead == nil)
    }
}
