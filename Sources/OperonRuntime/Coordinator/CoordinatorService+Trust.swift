import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonSystem
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
            case .unknownSession: refuse(.unknownSession)
            case .refused(let address, let why):
                logRefusal(.unknown, why, of: "\(address.incarnation)")
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
            guard let seals else { return .workerMessage(envelope) }
            guard let peer else {
                // The only message of a coordinator to itself.
                guard case .tick = envelope.body else { return nil }
                return .workerMessage(envelope)
            }
            return await allowed(envelope, from: peer, seals).map { .workerMessage($0) }
        } catch {
            await countUndecodable(error)
            return nil
        }
    }

    /// What of a message its sender may say; `nil`: nothing.
    private nonisolated func allowed(
        _ envelope: WorkerEnvelope,
        from peer: CoordinatorSeals.Peer,
        _ seals: CoordinatorSealBox
    ) async -> WorkerEnvelope? {
        guard envelope.sender.address == peer.address else {
            refuse(.foreignSender)
            return nil
        }
        var envelope = envelope
        envelope.rights = peer.grant.rights
        switch envelope.body {
        case .tick: break
        case .watched where !peer.grant.queues.isEmpty: break
        case .hello(let hello): return await allowed(hello, of: envelope, from: peer, seals)
        case _: return envelope
        }
        refuse(.notAllowed)
        return nil
    }

    private nonisolated func allowed(
        _ hello: Hello,
        of envelope: WorkerEnvelope,
        from peer: CoordinatorSeals.Peer,
        _ seals: CoordinatorSealBox
    ) async -> WorkerEnvelope? {
        var hello = hello
        if let predecessor = hello.predecessor, predecessor != peer.predecessor {
            logger.notice(
                "a worker cannot show that a life before it was its own",
                metadata: ["worker": "\(envelope.sender.name)", "before": "\(predecessor)"]
            )
            hello.predecessor = nil
        }
        logger.debug(
            "a worker greets",
            metadata: ["worker": "\(envelope.sender.name)", "key": "\(peer.keyText)"]
        )
        guard hello.limit(to: peer.grant) else {
            let why = "its join token allows none of the queues that it serves"
            if let frame = seals.refusal(why, of: peer.address) {
                await transport.send(frame, to: peer.address, priority: 0)
            }
            logRefusal(.noQueue, why, of: envelope.sender.name)
            return nil
        }
        var envelope = envelope
        envelope.body = .hello(hello)
        return envelope
    }

    /// Anybody with a login of the broker can be refused, as often as they like.
    private nonisolated func logRefusal(
        _ kind: WorkerRefusal,
        _ why: String,
        of worker: String
    ) {
        guard let count = refusals.count(kind, at: machineTime.now()) else { return }
        logger.warning(
            "worker refused",
            metadata: ["reason": "\(why)", "worker": "\(worker)", "messages": "\(count)"]
        )
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
        guard let rights = grant.rights else { return true }
        if !rights.queues.isEmpty {
            queues = queues.isEmpty ? rights.queues : queues.filter(rights.allows(queue:))
            guard !queues.isEmpty else { return false }
            // The firings of a trigger may go to any queue.
            offer.watches = false
        }
        if !rights.kinds.isEmpty {
            // Sorted, as a worker sends them.
            let known = runsAnyKind ? Set(kinds + rights.kinds).sorted() : kinds
            kinds = known.filter { Work.builtInKinds.contains($0) || rights.allows(kind: $0) }
            runsAnyKind = false
        }
        return true
    }
}

/// Why a worker was refused.
enum WorkerRefusal: Hashable {
    /// It cannot show that it may join.
    case unknown
    /// It may join, and serve none of the queues that it names.
    case noQueue
}
