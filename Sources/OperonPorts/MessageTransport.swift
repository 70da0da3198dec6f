package import OperonModel

/// Carries encoded messages between a coordinator and its workers. When the connection or the
/// broker fails, a transport may lose every message in it. It keeps the order of messages from one
/// sender to one receiver and never changes a byte. The layers above recover messages that must not
/// be lost.
///
/// One value serves one role. `run()` keeps it connected until its task is cancelled. Everything
/// that arrives meanwhile goes to `events`, which has one consumer.
package protocol CoordinatorTransport: Sendable {
    /// Connects, and reconnects whenever the connection is lost, until the task is cancelled. If
    /// trying again is certain to be useless (a bad address, bad credentials, another coordinator
    /// holds the prefix), it throws a `PortError`.
    func run() async throws

    /// Events in order; `up` comes first.
    var events: AsyncStream<[CoordinatorTransportEvent]> { get }

    /// Sends to one worker connection, in order with everything sent to it before. Suspends while
    /// more outgoing bytes wait than the limit allows. Drops the message while there is no
    /// connection.
    func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async

    /// Sends like `send` of bytes, for a transport within one process, which does not need to
    /// encode. `cost` is the approximate size of the encoded message in bytes. Returns `false` if
    /// this transport carries only bytes.
    func send(
        _ envelope: CoordinatorEnvelope,
        cost: Int,
        to address: WorkerAddress,
        priority: UInt8
    ) async -> Bool

    /// Sends to one worker connection, behind everything sent by `send` and in order with earlier
    /// bulk messages to it. Suspends while a mebibyte of bulk messages waits. Drops the message
    /// while there is no connection.
    func sendBulk(_ body: [UInt8], to address: WorkerAddress) async

    /// Sends to every worker that is connected now.
    func broadcast(_ body: [UInt8]) async

    /// Sends to itself through the queue that carries the workers' messages of this lane, so the
    /// message arrives after everything that already waits there.
    func sendToSelf(_ body: [UInt8], lane: WorkerLane) async

    /// Sends everything accepted so far, closes the connection and ends `run()` and `events`.
    func close() async

    /// Whether all workers are in this process, so that there is no broker.
    var isWithinProcess: Bool { get }
}

extension CoordinatorTransport {
    package var isWithinProcess: Bool { false }

    /// For transports that never queue messages.
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
    /// The connection is lost, and possibly the messages in it.
    case down(reason: String)
    /// A message from a worker. Beats travel separately, so that a backlog of events does not make
    /// leases expire.
    case message([UInt8])
    /// An unencoded message from a worker in this process.
    case envelope(WorkerEnvelope)
    /// No receiver took a message for this address. This is a hint, not a proof.
    case returned(WorkerAddress)
    /// The broker has stopped reading because of an alarm (`true`), or reads again (`false`).
    case blocked(Bool, reason: String)
}

/// The worker's side of a transport.
package protocol WorkerTransport: Sendable {
    /// As `CoordinatorTransport.run`. The transport numbers its connections in order.
    func run() async throws

    /// Events in order; `up` comes first, or `noCoordinator` followed by `up`.
    var events: AsyncStream<[WorkerTransportEvent]> { get }

    /// Sends to the current coordinator, in order within its lane. Suspends while more outgoing
    /// bytes wait than the limit allows. Drops the message while there is no connection.
    func send(_ body: [UInt8], lane: WorkerLane) async

    /// Sends like `send` of bytes, for a transport within one process: see `CoordinatorTransport`.
    func send(_ envelope: WorkerEnvelope, cost: Int, lane: WorkerLane) async -> Bool

    /// Closes this connection and opens the next one. The worker uses this when a connection is
    /// silent.
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
    /// Heartbeats. They reach the socket before everything else that waits; old ones are worthless.
    case beats
}

package enum WorkerTransportEvent: Hashable, Sendable {
    /// This connection is up: its queue is declared, bound and consumed.
    case up(connection: UInt32)
    /// Connected, but no coordinator has ever declared the exchanges and queues that `up` needs.
    /// This event comes once each time that is so; `up` follows as soon as a coordinator has
    /// declared them.
    case noCoordinator
    case down(reason: String)
    case message([UInt8])
    /// An unencoded message from a coordinator in this process.
    case envelope(CoordinatorEnvelope)
    /// No coordinator took a message. This is a hint, not a proof.
    case returned(lane: WorkerLane)
    case blocked(Bool, reason: String)
}

/// Why a transport gave up, in words that a user can act on.
package struct PortError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// The address is not valid.
        case invalidAddress
        /// The other side refused the credentials.
        case accessRefused
        /// There was no answer at the first attempt to connect.
        case unreachable
        /// Another coordinator holds the prefix.
        case prefixHeld
        /// The other side violates the protocol.
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
