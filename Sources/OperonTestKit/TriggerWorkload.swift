import OperonCore
import OperonModel

/// Random records about triggers, as a coordinator might make them.
struct TriggerWorkload: Sendable {
    private var generator: SeededGenerator
    private var known: [(id: TriggerID, numbers: [UInt64], last: UInt64)] = []
    private var count: UInt32 = 0

    init(seed: UInt64) { generator = SeededGenerator(seed: seed ^ 0x7472_6967_6765_7273) }

    mutating func next(at now: WallTime) -> [StoreRecord] {
        (0..<(generator.next() % 3)).map { _ in .trigger(record(now)) }
    }

    private mutating func record(_ now: WallTime) -> TriggerRecord {
        guard !known.isEmpty, generator.next() % 8 > 0 else { return added(now) }
        let place = Int(generator.next() % UInt64(known.count))
        let id = known[place].id
        switch generator.next() % 16 {
        case 0:
            known.remove(at: place)
            return .removed(id)
        case 1: return .replaced(trigger(id, now), state(now))
        case 2: return .changed(id, state(now))
        case 3, 4:
            guard let number = known[place].numbers.first else { return .changed(id, state(now)) }
            known[place].numbers.removeFirst()
            return .firingForgotten(FiringID(id, number))
        case 5..<10:
            guard let number = known[place].numbers.last else { return .changed(id, state(now)) }
            return .firing(firing(FiringID(id, number), now))
        case _:
            known[place].last += 1
            known[place].numbers.append(known[place].last)
            return .firing(firing(FiringID(id, known[place].last), now))
        }
    }

    private mutating func added(_ now: WallTime) -> TriggerRecord {
        count += 1
        let id = TriggerID(epoch: Epoch(rawValue: 3), number: count)
        known.append((id, [], 0))
        return .added(trigger(id, now), state(now))
    }

    private mutating func trigger(_ id: TriggerID, _ now: WallTime) -> StoredTrigger {
        StoredTrigger(
            id: id,
            name: "t\(generator.next() % 5)",
            addedAt: now,
            addedBy: generator.next() % 2 == 0 ? "" : "ann",
            body: Array("{\"a\": \(generator.next())}".utf8)
        )
    }

    private mutating func state(_ now: WallTime) -> TriggerState {
        var state = TriggerState(position: now)
        if generator.next() % 3 == 0 {
            state.suspension = Suspension(
                by: "ann",
                reason: "why",
                until: generator.next() % 2 == 0 ? now : nil
            )
        }
        state.isRemoved = generator.next() % 5 == 0
        return state
    }

    private mutating func firing(_ id: FiringID, _ now: WallTime) -> StoredFiring {
        let graph = GraphID(rawValue: UInt32(truncatingIfNeeded: generator.next()))
        let statuses: [FiringStatus] = [
            .waiting, .merged(into: id.number + 1), .accepted, .submitted(graph),
            .ended(graph, .allCases[Int(generator.next() % 4)]), .skipped, .dropped, .refused,
        ]
        let status = statuses[Int(generator.next() % UInt64(statuses.count))]
        var firing = StoredFiring(
            id: id,
            identity: "n\(id.number) “|”",
            plannedAt: generator.next() % 2 == 0 ? now : nil,
            occurredAt: now,
            ordinal: generator.next() % 100,
            floor: generator.next() % 2 == 0 ? now : nil,
            status: status
        )
        firing.count = UInt32(generator.next() % 7)
        firing.data = generator.next() % 2 == 0 ? "" : "[1, \"ä\"]"
        firing.reason = generator.next() % 2 == 0 ? "" : "refused"
        return firing
    }
}
