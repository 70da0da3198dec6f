import Logging
package import NIOCore
import NIOPosix
import NIOSSL
import OperonModel
import OperonPorts

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Tries everything that a coordinator or a worker needs from a broker, one step after the other,
/// and reports the result of each. It also tries a few things that the role does not need. It
/// leaves nothing behind except the exchanges that every coordinator declares, and no worker
/// notices it.
package struct BrokerProbe: Sendable {
    /// The role whose needs are probed.
    package enum Role: String, Hashable, Sendable, CaseIterable {
        case coordinator
        case worker
    }

    package struct Report: Hashable, Sendable {
        /// The time from the name to an open socket; `nil` if no socket could be opened, and
        /// `failure` says why.
        package var connectedAfter: Duration?
        /// `nil` if the connection is not encrypted or did not get that far.
        package var certificate: Certificate?
        /// The name of the broker; `nil` if the probe did not get that far.
        package var product: String?
        package var version: String?
        /// Whether the broker accepted the login.
        package var isLoggedIn = false
        /// Why the probe stopped.
        package var failure: Failure?
        package var permissions: [Permission] = []
        /// What the user may do though the role does not need it, for example “publish to any
        /// queue”.
        package var beyond: [String] = []
        package var holder: Holder?
    }

    package struct Certificate: Hashable, Sendable {
        /// Seconds since 1970.
        package var validFrom: Int64
        package var validUntil: Int64
    }

    package struct Failure: Hashable, Sendable {
        package enum Stage: Hashable, Sendable {
            case connecting
            case encrypting
            /// The other side is not a broker, or this port is not its AMQP port.
            case greeting
            case loggingIn
            case virtualHost
            /// The connection was lost after the login.
            case later
        }

        package var stage: Stage
        package var reason: String
    }

    /// One permission that a role needs.
    package struct Permission: Hashable, Sendable {
        package enum Outcome: Hashable, Sendable {
            case granted
            /// The reason in the broker's words.
            case refused(String)
            /// The step needs an exchange that no coordinator has declared yet.
            case absent
        }

        package var role: Role
        /// For example “declare operon.events”.
        package var what: String
        package var outcome: Outcome
    }

    /// The holder of the prefix.
    package enum Holder: Hashable, Sendable {
        case nobody
        /// The holder's answer.
        case coordinator(PrefixHolder)
        /// The prefix is locked, but its holder did not answer within two seconds.
        case silent
    }

    private let configuration: AMQPConfiguration
    private let roles: [Role]
    private let id: UInt64
    private let names: Topology

    /// `id` is random, so that nothing else uses the names made from it.
    package init(_ configuration: AMQPConfiguration, roles: [Role], id: UInt64) {
        self.configuration = configuration
        self.roles = roles
        self.id = id
        names = Topology(prefix: configuration.prefix)
    }

    /// Waits at most `limit` for each answer of the broker.
    package func run(on group: any EventLoopGroup, within limit: Duration) async -> Report {
        let session = ProbeSession(configuration, loop: group.any(), limit: limit)
        var report = await session.connect()
        guard report.failure == nil else { return report }
        do throws(Failure) {
            for role in roles {
                for step in steps(of: role) {
                    let outcome = try await session.perform(step)
                    report.permissions.append(
                        Permission(role: role, what: step.what, outcome: outcome)
                    )
                }
                for step in stepsBeyond(role) {
                    if case .granted = try await session.perform(step) {
                        report.beyond.append(step.what)
                    }
                }
            }
            if roles.contains(.coordinator) { report.holder = try await holder(session) }
        } catch {
            report.failure = error
        }
        await session.close()
        return report
    }

    // MARK: - Steps

    /// A step that the broker either answers or refuses by closing the channel.
    struct Step: Sendable {
        let what: String
        let methods: [OutgoingMethod]
        /// The last method is a publish. The message comes back, because no queue receives it.
        var isPublish = false
    }

    private var nobody: String { "doctor.\(Incarnation(rawValue: id))" }

    private func steps(of role: Role) -> [Step] {
        switch role {
        case .coordinator: coordinatorSteps
        case .worker: workerSteps
        }
    }

    private var coordinatorSteps: [Step] {
        let exchanges: [(String, ExchangeKind)] = [
            (names.events, .direct), (names.beats, .direct), (names.dispatch, .direct),
            (names.broadcast, .fanout),
        ]
        // Epochs count from 1, and nothing is published with this key, so these queues receive no
        // messages.
        let queues = [hearing(names.events, as: .events), hearing(names.beats, as: .beats)]
        return exchanges.map { name, kind in
            Step(what: "declare \(name)", methods: [.exchangeDeclare(name: name, kind: kind)])
        } + queues + [
            publish(to: names.dispatch), publish(to: "", "answer who holds the prefix"),
        ]
    }

    private func hearing(_ exchange: String, as consumer: Consumer) -> Step {
        let queue = "\(exchange).0.\(Incarnation(rawValue: id))"
        return Step(
            what: "hear \(exchange)",
            methods: [
                .queueDeclare(name: queue, arguments: []),
                .queueBind(queue: queue, exchange: exchange, routingKey: nobody),
                .consume(queue: queue, consumer: consumer),
            ]
        )
    }

    private var workerSteps: [Step] {
        let queue = "\(names.prefix)worker.\(Incarnation(rawValue: id)).0"
        return [
            Step(
                what: "have a queue of its own",
                methods: [
                    .queueDeclare(name: queue, arguments: []),
                    .consume(queue: queue, consumer: .worker),
                ]
            ),
            Step(
                what: "hear \(names.dispatch)",
                methods: [.queueBind(queue: queue, exchange: names.dispatch, routingKey: nobody)]
            ),
            Step(
                what: "hear \(names.broadcast)",
                methods: [.queueBind(queue: queue, exchange: names.broadcast, routingKey: "")]
            ),
            publish(to: names.events), publish(to: names.beats),
        ]
    }

    /// Steps that are refused to a user with the least privileges. The queue is exclusive, and no
    /// queue receives the messages.
    private func stepsBeyond(_ role: Role) -> [Step] {
        let queue = "operon-doctor-beyond.\(Incarnation(rawValue: id))"
        var steps: [Step] = []
        if !queue.hasPrefix(names.prefix) {
            steps.append(
                Step(
                    what: "declare queues of any name",
                    methods: [.queueDeclare(name: queue, arguments: [])]
                )
            )
        }
        switch role {
        case .coordinator: break
        case .worker:
            // The probe's own queue receives what has the key `nobody`.
            let key = nobody + ".beyond"
            steps.append(publish(to: "", key: key, "publish to any queue"))
            steps.append(publish(to: names.dispatch, key: key))
        }
        return steps
    }

    private func publish(
        to exchange: String,
        key: String? = nil,
        _ what: String? = nil
    ) -> Step {
        let key = key ?? nobody
        return Step(
            what: what ?? "publish to \(exchange)",
            methods: [.publish(exchange: exchange, routingKey: key, isMandatory: true)],
            isPublish: true
        )
    }

    // MARK: - Holder of the prefix

    private func holder(_ session: ProbeSession) async throws(Failure) -> Holder? {
        let lock = Step(
            what: "hold the prefix",
            methods: [.queueDeclare(name: names.lock, arguments: [])]
        )
        switch try await session.attempt(lock) {
        case .done: return .nobody
        case .closed(let reason) where reason.code == CloseReason.resourceLocked: break
        // The permissions already report this refusal.
        case .closed: return nil
        }
        let (queue, methods) = names.asking(id: id)
        guard case .done = try await session.attempt(Step(what: "ask", methods: methods)) else {
            return .silent
        }
        let answer = try await session.ask(names.lock, replyTo: queue, within: .seconds(2))
        return answer.flatMap { PrefixHolder(answer: $0) }.map { .coordinator($0) } ?? .silent
    }
}
