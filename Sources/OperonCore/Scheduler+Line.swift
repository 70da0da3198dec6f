import OperonModel

// The line in which queues wait to be served. Everything that decides whether a queue may start
// something, and when its turn is, notes the queue as changed: see `QueueTable` and `ReadyLanes`.
// An admission looks at the changed queues alone.
extension Scheduler {
    /// Puts the queues that have changed where they belong now.
    mutating func lineUpQueues() {
        while let queue = ready.takeRegrouped() {
            // A queue without lanes keeps its group, because it often gets the same lane again.
            if queues[queue].isFree {
                line.assign(queue, to: nil)
            } else if !ready.lanes(of: queue).isEmpty {
                line.assign(queue, to: groupKey(of: queue))
            }
            lineUp(queue)
        }
        while let queue = ready.takeChanged() { lineUp(queue) }
        while let queue = queues.takeChanged() {
            if configuration.violation != .leavesQueuesOut { lineUp(queue) }
        }
        while let queue = line.takeQueueWithToken(at: lastEventAt) { lineUp(queue) }
    }

    private mutating func lineUp(_ queue: Int) {
        visitCount += 1
        guard hasPlace(queue) else { return line.remove(queue) }
        if let time = tokenTime(of: queue) {
            line.remove(queue)
            line.wait(queue, until: time)
            return armRate(ofQueue: queue)
        }
        line.set(turn(of: queue))
    }

    private func turn(of queue: Int) -> QueueTurn {
        QueueTurn(slots: queues[queue].slots, servedAt: queues[queue].servedAt, queue: queue)
    }

    /// The queue is not looked at again in this admission, and neither are those like it if what it
    /// lacks is room at a worker.
    mutating func standAside(_ queue: Int) {
        guard line.isInLine(queue) else { return }
        let lanes = ready.lanes(of: queue)
        let lacksRoom = !lanes.isEmpty && lanes.allSatisfy { ready[$0].blockedIn == admissions }
        if lacksRoom || !isConnected { line.block(groupOf: queue) } else { line.pass(queue) }
    }

    mutating func endAdmission() {
        for queue in line.endAdmission() { lineUp(queue) }
    }

    /// What decides which workers have room for what the queue has ready; `nil`: not only this.
    private func groupKey(of queue: Int) -> QueueLine.GroupKey? {
        var needs: [QueueLine.Need] = []
        for number in ready.lanes(of: queue) {
            let lane = ready[number]
            guard !lane.isExternal, !lane.hasOtherEstimates, demands[lane.demand].isBare else {
                return nil
            }
            needs.append(QueueLine.Need(lane))
        }
        guard areWorkersSelective else { return QueueLine.GroupKey(needs: Set(needs), workers: []) }
        let serving = workers.indices.filter { workers[$0].servesQueue[queue] }
        return QueueLine.GroupKey(needs: Set(needs), workers: serving)
    }

    // MARK: - Invariants

    /// Checks that each queue that may start something is in line, and where it belongs.
    func violatedInvariantOfLine() -> String? {
        var standing: [Int: (turn: QueueTurn, key: QueueLine.GroupKey?)] = [:]
        for one in line.standing { standing[one.turn.queue] = one }
        guard areWorkersSelective == workers.contains(where: { !$0.queueSet.isEmpty }) else {
            return "it is not known whether workers serve only some queues"
        }
        for queue in queues.indices where !queues.isChanged(queue) && !ready.isChanged(queue) {
            let name = "queue “\(queues[queue].name)”"
            guard hasPlace(queue) else {
                if standing[queue] != nil { return "\(name) is in line and may start nothing" }
                continue
            }
            if let time = tokenTime(of: queue) {
                guard standing[queue] == nil, line.awaitsToken(queue, at: time) else {
                    return "\(name) has no token and does not wait for one"
                }
                continue
            }
            // It has a token since the last admission that looked for room.
            if line.hasToken(queue, at: lastEventAt) { continue }
            guard let found = standing[queue] else {
                return "\(name) may start something and is not in line: a lost wake-up"
            }
            guard found.turn == turn(of: queue), found.key == groupKey(of: queue) else {
                return "\(name) is in line at a place that is not its own"
            }
        }
        return line.violatedInvariant()
    }
}
