import OperonModel

// What fires a trigger: accepted, merged or skipped.
extension TriggerTable {
    mutating func occur(
        _ id: TriggerID,
        _ occurrence: Occurrence,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard let trigger = triggers[id], !trigger.state.isRemoved else {
            return effects.answer = .refused(.unknown)
        }
        if let number = number(of: occurrence.identity, by: id) {
            histories[id]?.refresh(number)
            return effects.answer = .again(FiringID(id, number))
        }
        // What is merged into a firing that waits is no further firing.
        let isLast = trigger.isSpent && trigger.waiting == nil
        guard !isLast, !(trigger.definition.policy.until.map { $0 <= now.wall } ?? false) else {
            return effects.answer = .refused(.ended)
        }
        accept(occurrence, by: id, at: now, into: &effects)
        // Looked up again: a reference that is held meanwhile would have the trigger copied.
        if case .accepted(let firing) = effects.answer, let trigger = triggers[id],
            trigger.definition.source.isFiredByRequests
        {
            effects.tell(.triggerFired, of: trigger, firing: firing.number, at: now)
        }
    }

    /// Decides what becomes of an occurrence.
    mutating func accept(
        _ occurrence: Occurrence,
        by id: TriggerID,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard let trigger = triggers[id] else { return }
        let policy = trigger.definition.policy
        let isRunning = trigger.isRunning
        if isRunning, policy.overlap == .skip, trigger.state.suspension == nil {
            let firing = append(occurrence, .skipped, to: id, at: now, into: &effects)
            return effects.answer = .accepted(firing)
        }
        let isHeld =
            isRunning && (policy.overlap == .queue || policy.overlap == .cancelRunning)
            || trigger.state.suspension != nil || policy.coalesce != nil
        if let waiting = trigger.waiting {
            // benign: it is reported again when the firing no longer waits.
            guard trigger.definition.merge != nil else {
                return effects.answer = .refused(.busy)
            }
            return merge(occurrence, into: waiting, of: id, at: now, &effects)
        }
        guard trigger.open.count < Limits.triggerOpenMax else {
            return effects.answer = .refused(.tooMany)
        }
        var first = occurrence
        switch EventMerge.data(
            policy.merge ?? .replace,
            occurrence.data,
            isTimer: occurrence.plannedAt != nil
        ) {
        case .success(let data): first.data = data
        case .failure(let problem):
            return effects.answer = .refused(.data(problem.description))
        }
        let status = isHeld ? FiringStatus.waiting : .accepted
        effects.answer = .accepted(append(first, status, to: id, at: now, into: &effects))
        if isHeld, let window = policy.coalesce {
            triggers[id]?.readyAt = now.monotonic + window
        }
        settle(id, at: now, into: &effects)
    }

    private mutating func merge(
        _ occurrence: Occurrence,
        into number: UInt64,
        of id: TriggerID,
        at now: Moment,
        _ effects: inout Effects
    ) {
        guard let trigger = triggers[id], let row = trigger.firings[number] else { return }
        let merged = EventMerge.data(
            trigger.definition.policy.merge ?? .replace,
            occurrence.data,
            isTimer: occurrence.plannedAt != nil,
            after: row.data,
            count: Int(row.count)
        )
        switch merged {
        case .failure where trigger.definition.source.watched != nil:
            // The next firing takes it.
            effects.answer = .refused(.busy)
        case .failure(let problem): effects.answer = .refused(.data(problem.description))
        case .success(let data):
            let status = FiringStatus.merged(into: number)
            effects.answer = .accepted(append(occurrence, status, to: id, at: now, into: &effects))
            change(FiringID(id, number), into: &effects) {
                $0.data = data
                $0.count = UInt32(clamping: Int($0.count) + Int(occurrence.count))
            }
        }
    }
}

extension TriggerTable.Effects {
    mutating func tell(
        _ kind: ClusterEvent.Kind,
        of trigger: TriggerTable.Trigger,
        firing: UInt64? = nil,
        at now: Moment
    ) {
        var event = ClusterEvent(kind, at: now.wall)
        event.trigger = trigger.definition.name
        event.firing = firing
        if kind == .triggerSuspended, let suspension = trigger.state.suspension {
            event.by = suspension.by
            event.reason = suspension.reason
        }
        events.append(event)
    }
}

extension EventMerge {
    struct Problem: Error, Hashable, CustomStringConvertible {
        let description: String
    }

    /// The data of a firing with those of one more occurrence.
    ///
    /// - Parameter earlier: The data before; `nil`: the occurrence is the first.
    static func data(
        _ merge: EventMerge,
        _ data: String,
        isTimer: Bool,
        after earlier: String? = nil,
        count: Int = 0
    ) -> Result<String, Problem> {
        guard !isTimer else { return .success(data) }
        let result: String
        switch merge {
        case .replace: result = data
        case .collect:
            guard count < Limits.triggerCollectedMax else {
                return .failure(
                    Problem(
                        description: "the firing that waits has collected \(count) events, and "
                            + "\(Limits.triggerCollectedMax) are the most"
                    )
                )
            }
            let one = data.isEmpty ? "null" : data
            result = earlier.map { $0.dropLast() + "," + one + "]" } ?? "[" + one + "]"
        case .add, .or:
            guard let number = whole(data) else {
                return .failure(
                    Problem(
                        description:
                            "the trigger merges its data with “\(merge.rawValue)”, so they "
                            + "must be a whole number of 64 bits"
                    )
                )
            }
            let before = earlier.flatMap(whole) ?? 0
            let (sum, overflow) = before.addingReportingOverflow(number)
            guard merge == .or || !overflow else {
                return .failure(Problem(description: "the sum does not fit into 64 bits"))
            }
            result = String(merge == .add ? sum : before | number)
        }
        guard result.utf8.count <= Limits.triggerDataBytes else {
            return .failure(
                Problem(
                    description: "the data of a firing may have \(Limits.triggerDataBytes) bytes, "
                        + "and would have \(result.utf8.count)"
                )
            )
        }
        return .success(result)
    }

    private static func whole(_ text: String) -> Int64? {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0D).contains($0) }
        let digits = text.utf8.drop(while: isBlank)
        guard let last = digits.lastIndex(where: { !isBlank($0) }), digits.first != 0x2B else {
            return nil
        }
        return Int64(String(decoding: digits[...last], as: UTF8.self))
    }
}

/// What fired a trigger, as JSON for the processes of its graph.
enum EventText {
    static func text(of firing: StoredFiring, _ definition: TriggerTable.Definition) -> String {
        let moment = firing.plannedAt ?? firing.occurredAt
        let local = localText(moment, in: definition.schedule.zone)
        var out: [UInt8] = Array("{\"trigger\":".utf8)
        JSONString.append(definition.name, to: &out)
        out += ",\"source\":\"\(definition.source.kind)\",\"firing\":\(firing.id.number)".utf8
        out += ",\"identity\":".utf8
        JSONString.append(firing.identity, to: &out)
        out += ",\"time\":\"\(DateText.text(moment))\"".utf8
        out += ",\"date\":\"\(local.prefix(10))\"".utf8
        out += ",\"localTime\":\"\(local)\"".utf8
        out += ",\"count\":\(firing.count)".utf8
        out += ",\"data\":".utf8
        out += firing.data.isEmpty ? Array("null".utf8) : Array(firing.data.utf8)
        out.append(UInt8(ascii: "}"))
        return String(decoding: out, as: UTF8.self)
    }

    /// To the second, such as `2026-05-01T08:30:00+02:00`.
    static func localText(_ time: WallTime, in zone: TimeZoneRules) -> String {
        let seconds = floored(time.nanosecondsSince1970)
        let offset = zone.offset(at: seconds)
        let (product, overflow) = (seconds + offset).multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return DateText.text(time) }
        let local = WallTime(nanosecondsSince1970: product)
        return DateText.text(local).dropLast() + offsetText(offset)
    }

    private static func floored(_ nanoseconds: Int64) -> Int64 {
        let seconds = nanoseconds / 1_000_000_000
        return nanoseconds % 1_000_000_000 < 0 ? seconds - 1 : seconds
    }

    /// `+02:00`
    static func offsetText(_ offset: Int64) -> String {
        func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let minutes = abs(offset) / 60
        return (offset < 0 ? "-" : "+") + two(minutes / 60) + ":" + two(minutes % 60)
    }
}
