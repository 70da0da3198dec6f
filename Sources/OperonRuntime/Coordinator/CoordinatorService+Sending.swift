import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonWire

// Passes messages to the transport. If a message is too large, only the operations that make it so
// are affected.
extension CoordinatorService {
    nonisolated func sendAll() async {
        for await _ in sendSignal.raised {
            let (items, waiters) = await takeOutbox()
            for item in items {
                passed(.beforeSend)
                await send(item)
                passed(.afterSend)
            }
            for tick in await takeTicks() { await send(tick) }
            for waiter in waiters { waiter.open() }
        }
        // Nothing is sent any more, so no caller may wait for it.
        let (_, waiters) = await takeOutbox()
        for waiter in waiters { waiter.open() }
    }

    nonisolated func send(_ item: CoordinatorOutbox.Item) async {
        // A message that may be too large is encoded, which gives its exact size in bytes.
        let cost = item.approximateBytes
        if seals == nil, case .worker(let address) = item.receiver, cost < limits.messageBytes / 2,
            await transport.send(
                item.envelope,
                cost: cost,
                to: address,
                priority: item.priority
            )
        {
            return
        }
        do throws(WireError) {
            try await sendEncoded(item.envelope, item)
        } catch {
            logger.error("message not sent", metadata: ["reason": "\(error)"])
            await sendRest(of: item)
        }
    }

    private nonisolated func sendEncoded(
        _ envelope: CoordinatorEnvelope,
        _ item: CoordinatorOutbox.Item
    ) async throws(WireError) {
        let body = try Wire.encode(envelope, limits: limits)
        await sendSealed(body, to: item)
    }

    /// Fails an operation that would otherwise be resent with every beat; the others of its message
    /// are sent without it.
    private nonisolated func sendRest(of item: CoordinatorOutbox.Item) async {
        let parts = item.envelope.parts(within: limits)
        if let rest = parts.fitting {
            do throws(WireError) {
                try await sendEncoded(rest, item)
            } catch {
                logger.error("message not sent", metadata: ["reason": "\(error)"])
            }
        }
        guard !parts.tooLarge.isEmpty else { return }
        await fail(
            parts.tooLarge.map { held, bytes in
                .attemptUnsendable(
                    held,
                    .inputTooLarge(bytes: bytes, limit: limits.messageBytes)
                )
            }
        )
    }

    private func fail(_ unsendable: [Scheduler.Event]) { handle(unsendable) }

    nonisolated func send(_ tick: UInt64) async {
        for (way, lane) in [(Tick.Way.events, WorkerLane.events), (.beats, .beats)] {
            do throws(WireError) {
                let body = try Wire.encode(await tickEnvelope(tick, way), limits: limits)
                let sealed = seals?.sealOwn(body, lane: lane == .beats ? 1 : 0) ?? body
                await transport.sendToSelf(sealed, lane: lane)
            } catch {
                logger.error("message not sent", metadata: ["reason": "\(error)"])
            }
        }
    }

    private func tickEnvelope(_ number: UInt64, _ way: Tick.Way) -> WorkerEnvelope {
        WorkerEnvelope(
            reign: scheduler.reign,
            epoch: scheduler.epoch,
            sequence: 0,
            sender: .none,
            body: .tick(Tick(number: number, way: way))
        )
    }
}

extension CoordinatorEnvelope {
    /// The parts of a message that is too large.
    struct Parts {
        /// As much as fits, under the same number; `nil`: nothing fits. The rest is sent again with
        /// the next beat.
        var fitting: CoordinatorEnvelope?
        /// Attempts that no message can carry, each with the size in bytes of a message that
        /// carries only that attempt.
        var tooLarge: [(held: HeldAttempt, bytes: Int)] = []
    }

    func parts(within limits: Limits) -> Parts {
        var parts = Parts()
        var room = limits.messageBytes
        switch body {
        case .dispatch(let dispatch):
            var fitting = dispatch
            fitting.operations = dispatch.operations.filter { operation in
                var alone = dispatch
                alone.operations = [operation]
                let bytes = byteCount(with: .dispatch(alone))
                guard bytes <= limits.messageBytes else {
                    parts.tooLarge.append((operation.held, bytes))
                    return false
                }
                room -= bytes
                return room >= 0
            }
            if !fitting.operations.isEmpty { parts.fitting = carrying(.dispatch(fitting)) }
        case .control(let control):
            var fitting = control
            fitting.verdicts = []
            room -= byteCount(with: .control(fitting))
            fitting.verdicts = control.verdicts.filter { verdict in
                var alone = Control(acknowledged: 0)
                alone.verdicts = [verdict]
                room -= byteCount(with: .control(alone))
                return room >= 0
            }
            parts.fitting = carrying(.control(fitting))
        case .welcome, .resync, .refused, .chunks, .watch: break
        }
        return parts
    }

    private func carrying(_ body: CoordinatorMessage) -> CoordinatorEnvelope {
        var envelope = self
        envelope.body = body
        return envelope
    }

    private func byteCount(with body: CoordinatorMessage) -> Int {
        var unlimited = Limits()
        unlimited.messageBytes = .max
        do throws(WireError) {
            return try Wire.encode(carrying(body), limits: unlimited).count
        } catch {
            return .max  // More than can be encoded at all.
        }
    }
}
