import OperonModel
import OperonPorts
import OperonRuntime
import OperonWire

/// The ways of the model broker. Order is kept within each.
enum ShellLane: Hashable {
    case toWorker(Incarnation, UInt32)
    case bulk(Incarnation, UInt32)
    case events
    case beats
}

/// A coordinator's connection to the model broker.
///
/// `@unchecked Sendable`: everything in this process runs on one thread.
final class ShellTransport: CoordinatorTransport, @unchecked Sendable {
    let events: AsyncStream<[CoordinatorTransportEvent]>
    private let continuation: AsyncStream<[CoordinatorTransportEvent]>.Continuation
    private unowned let simulation: ShellSimulation
    private let ended = Latch()
    var isUp = false
    /// Counts its connections.
    var connection = 0
    var isEnded: Bool { ended.isOpen }

    init(_ simulation: ShellSimulation) {
        self.simulation = simulation
        (events, continuation) = AsyncStream.makeStream()
    }

    func run() async throws {
        await ended.wait()
        continuation.finish()
    }

    func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async {
        await wait()
        guard isUp else { return }
        simulation.post(body, to: address, .toWorker(address.incarnation, address.connection))
    }

    func sendBulk(_ body: [UInt8], to address: WorkerAddress) async {
        await wait()
        guard isUp else { return }
        simulation.post(body, to: address, .bulk(address.incarnation, address.connection))
    }

    func broadcast(_ body: [UInt8]) async {
        await wait()
        guard isUp else { return }
        simulation.broadcast(body)
    }

    func sendToSelf(_ body: [UInt8], lane: WorkerLane) async {
        guard isUp else { return }
        simulation.post(body, lane)
    }

    func close() async { end() }

    /// Whoever runs it sees its end.
    func end() {
        isUp = false
        ended.open()
    }

    func hear(_ event: CoordinatorTransportEvent) { continuation.yield([event]) }

    /// Now and then, the broker takes nothing for a while.
    private func wait() async {
        let machine = simulation.machine
        guard !simulation.hasHealed, machine.draw(0.02) else { return }
        try? await machine.sleep(for: machine.draw(upTo: .milliseconds(300)))
    }
}

// The model broker.
extension ShellSimulation {
    /// Connects the coordinator, unless the broker is down: it is connected when that is back.
    func connect(_ process: CoordinatorProcess) {
        machine.after(machine.draw(upTo: .milliseconds(50))) {
            guard self.brokerIsUp, !process.isDead, !process.transport.isUp, process.service != nil,
                !process.transport.isEnded
            else { return }
            process.transport.isUp = true
            process.transport.connection += 1
            process.transport.hear(.up)
        }
    }

    func disconnect(_ process: CoordinatorProcess, isBroker: Bool) {
        guard process.transport.isUp else { return }
        process.transport.isUp = false
        process.transport.hear(.down(reason: "cut"))
        if !isBroker { machine.after(machine.draw(upTo: .seconds(3))) { self.connect(process) } }
    }

    private func arrival(on lane: ShellLane) -> Timestamp {
        let time = max(
            machine.now + machine.draw(upTo: scenario.delayMax),
            laneFree[lane] ?? machine.now
        )
        laneFree[lane] = time
        return time
    }

    func post(_ body: [UInt8], to address: WorkerAddress, _ lane: ShellLane) {
        overhear(body, to: address)
        // The queue of a hostile worker exists, and nobody reads it.
        if Self.isIntruder(address) { return }
        let index = workers.firstIndex { $0.address == address }
        guard let index else {
            process?.transport.hear(.returned(address))
            return
        }
        let isLost = isLost()
        note("\(isLost ? "lost" : "sent") to worker \(index): \(Self.text(ofCoordinator: body))")
        if isLost { return }
        machine.at(arrival(on: lane)) { self.deliver(body, to: index, at: address) }
    }

    /// For people who read a trace.
    private static func text(ofCoordinator body: [UInt8]) -> String {
        (try? Wire.decodeCoordinator(body)).map { "\($0.sequence) \($0.body)" } ?? "?"
    }

    private static func text(ofWorker body: [UInt8]) -> String {
        (try? Wire.decodeWorker(body)).map { "\($0.sender.name) \($0.body)" } ?? "?"
    }

    private func isLost() -> Bool { !hasHealed && machine.draw(scenario.loss) }

    func broadcast(_ body: [UInt8]) {
        for index in workers.indices {
            guard let address = workers[index].address else { continue }
            let lane = ShellLane.toWorker(address.incarnation, address.connection)
            machine.at(arrival(on: lane)) { self.deliver(body, to: index, at: address) }
        }
    }

    /// To the coordinator that is connected now, unless its connection is lost meanwhile.
    func post(_ body: [UInt8], _ lane: WorkerLane) {
        guard let process, process.transport.isUp else { return }
        let isLost = isLost()
        note("\(isLost ? "lost" : "sent") by \(Self.text(ofWorker: body))")
        if isLost { return }
        let connection = process.transport.connection
        machine.at(arrival(on: lane == .beats ? .beats : .events)) {
            guard process.transport.isUp, process.transport.connection == connection else { return }
            process.transport.hear(.message(body))
        }
    }
}
