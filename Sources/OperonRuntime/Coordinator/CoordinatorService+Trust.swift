import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonTrust
import OperonWire

// Messages between coordinator and workers are sealed. Only what a worker has sealed, and what its
// grant allows it to say, reaches the scheduler.
extension CoordinatorService {
    nonisolated func translate(_ bytes: [UInt8]) async -> Scheduler.Event? {
        guard let seals else { return await decoded(bytes, from: nil) }
        let outputs: [CoordinatorSeals.Output]
        do throws(SealFault) {
            outputs = try seals.receive(bytes, at: machineTime.wall())
        } catch {
            refuse(error)
            return nil
        }
        var event: Scheduler.Event?
        for output in outputs {
            switch output {
            case .message(let body, let peer): event = await decoded(body, from: peer)
            case .own(let body): event = await decoded(body, from: nil)
            case .send(let frame, let address):
                await transport.send(frame, to: address, priority: 0)
            case .refused(let address, let why):
                logger.warning(
                    "worker refused",
                    metadata: ["reason": "\(why)", "worker": "\(address.incarnation)"]
                )
            }
        }
        return event
    }

    private nonisolated func decoded(
        _ body: [UInt8],
        from peer: CoordinatorSeals.Peer?
    ) async -> Scheduler.Event? {
        do throws(WireError) {
            let envelope = try Wire.decodeWorker(body, limits: limits)
            guard let peer else { return .workerMessage(envelope) }
            return await allowed(envelope, from: peer).map { .workerMessage($0) }
        } catch {
            await countUndecodable(error)
            return nil
        }
    }

    /// What of a message its sender may say; `nil`: nothing.
    private nonisolated func allowed(
        _ envelope: WorkerEnvelope,
        from peer: CoordinatorSeals.Peer
    ) async -> WorkerEnvelope? {
        guard envelope.sender.address == peer.address else {
            refuse(.foreignSender)
            return nil
        }
        guard case .hello(var hello) = envelope.body else { return envelope }
        hello.predecessor = hello.predecessor.flatMap { $0 == peer.predecessor ? $0 : nil }
        guard hello.limit(to: peer.grant) else {
            let why = "its join token allows none of the queues that it serves"
            if let frame = seals?.refusal(why, of: peer.address) {
                await transport.send(frame, to: peer.address, priority: 0)
            }
            logger.warning(
                "worker refused",
                metadata: ["reason": "\(why)", "worker": "\(envelope.sender.name)"]
            )
            return nil
        }
        var envelope = envelope
        envelope.body = .hello(hello)
        return envelope
    }

    private nonisolated func refuse(_ fault: SealFault) {
        meters?.countRefused(fault)
        guard let count = seals?.faults.count(fault, at: machineTime.now()) else { return }
        logger.warning(
            "message refused",
            metadata: ["reason": "\(fault.text)", "messages": "\(count)"]
        )
    }

    // MARK: - Out

    /// Sends a message of the task that sends all but outputs.
    nonisolated func sendSealed(_ body: [UInt8], to item: CoordinatorOutbox.Item) async {
        switch item.receiver {
        case .worker(let address):
            guard let body = sealed(body, to: address, lane: .messages) else { return }
            await transport.send(body, to: address, priority: item.priority)
        case .everyWorker: await transport.broadcast(seals?.announcement ?? body)
        }
    }

    /// `nil`: there are no keys for it. The worker that cannot be reached will ask for keys.
    nonisolated func sealed(
        _ body: [UInt8],
        to address: WorkerAddress,
        lane: CoordinatorSealBox.Lane
    ) -> [UInt8]? {
        guard let seals else { return body }
        return seals.seal(body, to: address, lane: lane)
    }

    // MARK: - Other keys

    /// Uses the keys that the directory has by now, and refuses what is revoked by now.
    package nonisolated func replace(_ trust: CoordinatorTrust) {
        guard let lost = seals?.replace(trust) else { return }
        logger.notice(
            "keys read again",
            metadata: ["key": "\(trust.keys.fingerprint)", "revoked": "\(trust.revoked.count)"]
        )
        for address in lost {
            logger.warning("worker revoked", metadata: ["worker": "\(address.incarnation)"])
        }
    }
}

extension Hello {
    /// Leaves what the grant allows. Returns whether that is anything.
    mutating func limit(to grant: WorkerGrant) -> Bool {
        if !grant.queues.isEmpty {
            queues = queues.isEmpty ? grant.queues : queues.filter(grant.allows(queue:))
            guard !queues.isEmpty else { return false }
        }
        if !grant.kinds.isEmpty {
            // Sorted, as a worker sends them.
            let known = runsAnyKind ? Set(kinds + grant.kinds).sorted() : kinds
            kinds = known.filter { Work.builtInKinds.contains($0) || grant.allows(kind: $0) }
            runsAnyKind = false
        }
        return true
    }
}

extension WorkerGrant {
    /// - Throws: A refusal of operations that a worker with this grant may not add.
    func check(additionOf operations: [OperationDescription]) throws(Refusal) {
        for operation in operations {
            guard allows(queue: operation.queue) else {
                throw .invalid(
                    field: "queue of “\(operation.name)”",
                    why: "the worker's join token does not allow the queue “\(operation.queue)”"
                )
            }
            guard case .registered(let kind, _) = operation.work, !allows(kind: kind) else {
                continue
            }
            throw .invalid(
                field: "kind of “\(operation.name)”",
                why: "the worker's join token does not allow the kind “\(kind)”"
            )
        }
    }
}
