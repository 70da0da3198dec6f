package import OperonModel

/// Carries encoded messages between a coordinator and its workers. It may lose everything in it at
/// any time, with the connection or the broker; it keeps the order of one sender to one receiver
/// and never changes a byte. Whatever must not be lost is repaired above it.
///
/// One value serves one role. `run()` keeps it connected, for ever, until its task is cancelled;
/// everything that happens meanwhile arrives in `events`, which has one consumer.
package protocol CoordinatorTransport: Sendable {
    /// Connects, and connects again whenever the connection is lost, until the task is cancelled
    /// or it is certain that trying again is useless (a bad address, bad credentials, another
    /// coordinator holds the prefix), which it throws as a `PortError`.
    func run() async throws

    /// In order; `up` first.
    var events: AsyncStream<[CoordinatorTransportEvent]> { get }

    /// Sends to one worker connection, in order with everything sent to it before. Suspends while
    /// more than the limit of outgoing bytes waits; dropped while there is no connection.
    func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async

    /// As `send` of bytes, for a transport within one process, which need not encode anything:
    /// `cost` is about how many bytes it would be. `false`: this transport carries bytes only.
    func send(
        _ envelope: CoordinatorEnvelope,
        cost: Int,
        to address: WorkerAddress,
        priority: UInt8
    ) async -> Bool

    /// Sends to one worker connection behind everything else, in order with what was sent to it in
    /// this way before. Suspends while a mebibyte of such messages waits; dropped while there is no
    /// connection.
    func sendBulk(_ body: [UInt8], to address: WorkerAddress) async

    /// Sends to every worker that is connected now.
    func broadcast(_ body: [UInt8]) async

    /// Sends to itself, on the way that workers' messages of this lane take: it arrives behind
    /// everything that waits there.
    func sendToSelf(_ body: [UInt8], lane: WorkerLane) async

    /// Sends everything accepted so far, closes the connection and ends `run()` and `events`.
    func close() async
}

extension CoordinatorTransport {
    /// For transports in which nothing waits.
    package func sendBulk(_ body: [UInt8], to address: WorkerAddress) async {
        await send(body, to: address, priority: 0)
    }

    /// For transports between processes.
    package func send(
        _ envelope: CoordinatorEnvelope,
        cost: Int,
        to address: WorkerAddress,
        priority: UInt8
    ) async -> Bool { false }
}

package enum CoordinatorTransportEvent: Hashable, Sendable {
    /// Connected, bound and consuming: what workers send from now on arrives.
    case up
    /// The connection is lost; what was in it may be.
    case down(reason: String)
    /// A message from a worker. Beats have a way of their own, so that a backlog of events costs
    /// nobody a lease.
    case message([UInt8])
    /// The same from a worker in this process, as it was.
    case envelope(WorkerEnvelope)
    /// Nobody was there to take a message for this address. A hint, not a proof.
    case returned(WorkerAddress)
    /// The broker reads nothing more for the moment (an alarm), or does again.
    case blocked(Bool, reason: String)
}

/// The worker's side.
package protocol WorkerTransport: Sendable {
    /// As `CoordinatorTransport.run`. Each connection gets the next number.
    func run() async throws

    /// In order; `up` first, or `noCoordinator` and then `up`.
    var events: AsyncStream<[WorkerTransportEvent]> { get }

    /// Sends to the coordinator, whoever that is, in order within its lane. Suspends while more
    /// than the limit of outgoing bytes waits; dropped while there is no connection.
    func send(_ body: [UInt8], lane: WorkerLane) async

    /// As `send` of bytes, for a transport within one process: see `CoordinatorTransport`.
    func send(_ envelope: WorkerEnvelope, cost: Int, lane: WorkerLane) async -> Bool

    /// Closes this connection and opens the next one: the worker's remedy for a silent one.
    func reconnect() async

    /// Sends everything accepted so far, closes the connection and ends `run()` and `events`.
    func close() async
}

extension WorkerTransport {
    /// For transports between processes.
    package func send(_ envelope: WorkerEnvelope, cost: Int, lane: WorkerLane) async -> Bool {
        false
    }
}

/// How a worker's message reaches the coordinator.
package enum WorkerLane: Hashable, Sendable {
    /// Hellos, events and logs.
    case events
    /// Heartbeats: ahead of everything else in the socket, and worthless when old.
    case beats
}

package enum WorkerTransportEvent: Hashable, Sendable {
    /// This connection is up: its queue is declared, bound and consumed.
    case up(connection: UInt32)
    /// Connected, but no coordinator has ever declared what it takes to be up. Said once for each
    /// time this is so; `up` follows as soon as one has.
    case noCoordinator
    case down(reason: String)
    case message([UInt8])
    /// The same from a coordinator in this process, as it was.
    case envelope(CoordinatorEnvelope)
    /// No coordinator was there to take a message. A hint, not a proof.
    case returned(lane: WorkerLane)
    case blocked(Bool, reason: String)
}

/// Why a port gave up, in words a user can act on.
package struct PortError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// The address cannot be read.
        case invalidAddress
        /// The other side refused who we are.
        case accessRefused
        /// Nobody there, at the first try.
        case unreachable
        /// Another coordinator holds the prefix.
        case prefixHeld
        /// The other side does not speak as it should.
        case protocolViolation
    }

    package let code: Code
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}
