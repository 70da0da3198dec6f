import DequeModule
package import OperonModel

// Hellos, beats, and which coordinator the worker follows.
extension WorkerAgent {
    mutating func linkCameUp(
        _ connection: UInt32,
        at now: Timestamp,
        into effects: inout Effects
    ) {
        self.connection = connection
        sayHello(at: now, into: &effects)
    }

    mutating func linkWentDown() {
        link = .down
        unansweredSince = nil
    }

    /// From here to the welcome nothing is started, and dispatches are dropped: the hello lists
    /// what the worker holds, and the coordinator decides by it.
    mutating func sayHello(at now: Timestamp, into effects: inout Effects) {
        link = .greeting
        received = 0
        sentCount = 0
        inFlightBytes = 0
        nextBeat = now + settings.beat
        if unansweredSince == nil { unansweredSince = now }
        var hello = Hello(
            sentAt: now,
            host: configuration.host,
            processID: configuration.processID,
            slots: UInt32(configuration.slots),
            queues: configuration.queues,
            kinds: configuration.kinds,
            held: heldInOrder.filter { isListed($0) },
            firstEvent: firstEvent,
            lastEvent: firstEvent + UInt64(events.count) - 1,
            isDraining: drain != .none,
            worker: configuration.workerID,
            predecessor: configuration.predecessor
        )
        hello.runsAnyKind = configuration.runsAnyKind
        hello.offer = configuration.offer
        append(.hello(hello), lane: .events, into: &effects)
    }

    /// An attempt that was ended by order is no longer held, though its process may take a moment
    /// to end.
    private func isListed(_ attempt: HeldAttempt) -> Bool {
        guard let holding = held[attempt.attempt], holding.end != .silent else { return false }
        return configuration.violation != .hidesWaiting || holding.state != .waiting
    }

    mutating func beatIfDue(at now: Timestamp, into effects: inout Effects) {
        guard link != .down, nextBeat <= now else { return }
        if let since = unansweredSince, now - since >= settings.lease {
            unansweredSince = now
            nextBeat = now + settings.beat
            effects.wantsReconnect = true
            return
        }
        switch link {
        case .down: break  // Excluded above.
        case .greeting: sayHello(at: now, into: &effects)
        case .welcomed: sayBeat(at: now, into: &effects)
        }
    }

    mutating func sayBeat(at now: Timestamp, into effects: inout Effects) {
        nextBeat = now + settings.beat
        if unansweredSince == nil { unansweredSince = now }
        let sent = firstEvent + UInt64(sentCount) - 1
        // A method as an argument would copy the agent.
        var listed = heldInOrder.filter { isListed($0) }
        // Final events that wait for room in the window are not sent yet, so their attempts count
        // as held.
        for index in sentCount..<events.count {
            switch events[index].event {
            case .started, .added, .yielded, .read: continue
            case .finished(let held, _), .returned(let held): listed.append(held)
            }
        }
        append(
            .beat(
                Beat(
                    sentAt: now,
                    received: received,
                    sent: sent,
                    held: listed,
                    isDraining: drain != .none,
                    requests: configuration.violation == .hidesRequests
                        ? [] : fetcher.openRequests,
                    open: openRequests
                )
            ),
            lane: .beats,
            into: &effects
        )
    }

    func append(_ message: WorkerMessage, lane: Lane, into effects: inout Effects) {
        effects.messages.append((lane, envelope(message)))
    }

    /// A message with the identity of this connection.
    package func envelope(_ message: WorkerMessage) -> WorkerEnvelope {
        let sender = WorkerIdentity(
            name: configuration.name,
            incarnation: configuration.incarnation,
            connection: connection
        )
        return WorkerEnvelope(
            reign: reign,
            epoch: epoch,
            sequence: 0,
            sender: sender,
            body: message
        )
    }

    package var isWelcomed: Bool { link == .welcomed }

    func nextWake() -> Timestamp? {
        var wake: Timestamp?
        func consider(_ time: Timestamp) { wake = min(wake ?? time, time) }
        if link != .down { consider(nextBeat) }
        if let first = unreportedStarts.first, let place = held.index(forKey: first),
            let started = held.values[place].startedAt
        {
            consider(started + configuration.startReportDelay)
        }
        if let end = exclusiveEnd { consider(end) }
        switch drain {
        case .none, .ending, .left: break
        case .finishing(let until), .leaving(let until), .stopping(let until): consider(until)
        }
        return wake
    }
}

// MARK: - Receiving

extension WorkerAgent {
    mutating func receive(
        _ envelope: CoordinatorEnvelope,
        at now: Timestamp,
        into effects: inout Effects
    ) {
        guard link != .down, follows(envelope, at: now, into: &effects) else { return }
        // Epochs compare only within a reign.
        let knownEpoch = envelope.reign == reign ? epoch : Epoch(rawValue: 0)
        // An outdated coordinator is ignored completely: counting it as heard would make it seem
        // alive.
        guard envelope.epoch >= knownEpoch || configuration.violation == .acceptsLowerEpochs
        else { return }
        let isFirstOfEpoch = envelope.reign == reign && envelope.epoch > epoch
        if isFirstOfEpoch { epoch = envelope.epoch }
        if case .resync = envelope.body {
            heardAt = now
            // Also before a welcome: no coordinator received the hello that was not answered, and
            // the next regular hello would come up to a beat later.
            if link != .down { sayHello(at: now, into: &effects) }
            return
        }
        if isFirstOfEpoch, link == .welcomed {
            // Another coordinator is in charge now, and has not welcomed this worker yet.
            heardAt = now
            dropWaiting(into: &effects)
            sayHello(at: now, into: &effects)
            if case .dispatch(let dispatch) = envelope.body { ignore(dispatch, into: &effects) }
            return
        }
        switch envelope.body {
        case .refused(let reason):
            effects.notices.append(.refused(reason))
            effects.wantsReconnect = true
            return
        case .chunks(let chunks):
            takeChunks(chunks, of: envelope, at: now)
            return
        case .watch(let orders):
            // They have no numbers, but must come from the coordinator that welcomed this worker.
            guard link == .welcomed, envelope.reign == reign, envelope.epoch == epoch
            else { return }
            heardAt = now
            effects.watchOrders += orders
            return
        case .welcome, .dispatch, .control, .resync: break
        }
        // benign: a copy from a connection of the coordinator that has ended. Each coordinator
        // counts from the start.
        guard isFirstOfEpoch || envelope.sequence > received else { return }
        heardAt = now
        switch envelope.body {
        case .welcome(let welcome):
            received = envelope.sequence
            accept(welcome, envelope, at: now, into: &effects)
        case .dispatch(let dispatch):
            guard link == .welcomed || configuration.violation == .startsBeforeWelcome else {
                ignore(dispatch, into: &effects)
                return
            }
            received = envelope.sequence
            accept(dispatch, at: now, into: &effects)
        case .control(let control):
            guard link == .welcomed else { return }
            received = envelope.sequence
            accept(control, at: now, into: &effects)
        case .resync, .refused, .chunks, .watch: break  // Handled above.
        }
    }

    private mutating func accept(
        _ dispatch: Dispatch,
        at now: Timestamp,
        into effects: inout Effects
    ) {
        for operation in dispatch.operations { take(operation, into: &effects) }
        for operation in dispatch.unreadable { refuse(operation, at: now, into: &effects) }
        // Last: the coordinator may have joined two messages. The first may have a copy of an
        // attempt whose end only the second acknowledges.
        acknowledge(dispatch.acknowledged)
    }

    private func ignore(_ dispatch: Dispatch, into effects: inout Effects) {
        for operation in dispatch.operations {
            effects.notices.append(.dispatchIgnored(operation.held.attempt))
        }
    }

    /// Whether the worker follows the sender. A worker belongs to a reign while it holds anything
    /// of it, and follows another reign only when it holds nothing, or after long silence.
    private mutating func follows(
        _ envelope: CoordinatorEnvelope,
        at now: Timestamp,
        into effects: inout Effects
    ) -> Bool {
        if envelope.reign == reign { return true }
        // There is an answer, so the connection works, whoever sent it.
        unansweredSince = nil
        if events.isEmpty, held.values.allSatisfy({ $0.end == .silent }) {
            // A new reign counts events from 1, and answers a hello that does not name an old
            // reign.
            switch envelope.body {
            case .welcome, .resync: return true
            case .dispatch, .control, .refused, .chunks, .watch: return false
            }
        }
        guard now - heardAt >= settings.orphanAfter else { return false }
        effects.notices.append(.orphaned(reign))
        abandonEverything(into: &effects)
        sayHello(at: now, into: &effects)
        return false
    }

    private mutating func accept(
        _ welcome: Welcome,
        _ envelope: CoordinatorEnvelope,
        at now: Timestamp,
        into effects: inout Effects
    ) {
        if envelope.reign != reign {
            reign = envelope.reign
            firstEvent = 1
            sentCount = 0
        }
        let wasWelcomed = link == .welcomed
        epoch = envelope.epoch
        settings = Settings(
            lease: max(welcome.lease, .seconds(2)),
            beat: max(welcome.beat, .milliseconds(10)),
            eventWindow: Int(welcome.eventWindow),
            orphanAfter: welcome.orphanAfter
        )
        link = .welcomed
        leaseProof = max(leaseProof ?? .zero, min(welcome.answers, now))
        unansweredSince = nil
        acknowledge(welcome.acknowledged)
        for order in welcome.orders { obey(order, at: now, into: &effects) }
        // benign: the answers to several hellos of one connection.
        if !wasWelcomed {
            // Earlier requests may have been lost with the previous coordinator.
            fetcher.askAgain()
            effects.notices.append(.welcomed(reign, epoch))
            sayBeat(at: now, into: &effects)
        }
    }

    private mutating func accept(
        _ control: Control,
        at now: Timestamp,
        into effects: inout Effects
    ) {
        if let answers = control.answers {
            leaseProof = max(leaseProof ?? .zero, min(answers, now))
            unansweredSince = nil
        }
        acknowledge(control.acknowledged)
        if let from = control.resendFrom { resend(from: from) }
        for order in control.orders { obey(order, at: now, into: &effects) }
        for verdict in control.verdicts { take(verdict, into: &effects) }
    }
}
