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

/// Tries out what a coordinator or a worker needs of a broker, one thing after the other, and
/// tells how each went. It leaves nothing behind but the exchanges that any coordinator declares,
/// and no worker hears of it.
package struct BrokerProbe: Sendable {
    /// What is to be found out about.
    package enum Role: String, Hashable, Sendable, CaseIterable {
        case coordinator
        case worker
    }

    package struct Report: Hashable, Sendable {
        /// From the name to an open socket; `nil`: there was none, and `failure` says why.
        package var connectedAfter: Duration?
        /// `nil`: plain, or not that far.
        package var certificate: Certificate?
        /// What it calls itself; `nil`: it did not come to that.
        package var product: String?
        package var version: String?
        /// Whether who we are was accepted.
        package var isLoggedIn = false
        /// Why nothing further could be tried.
        package var failure: Failure?
        package var permissions: [Permission] = []
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
            /// Something answered that is no broker, or not on this port.
            case greeting
            case loggingIn
            case virtualHost
            /// It was lost after the login.
            case later
        }

        package var stage: Stage
        package var reason: String
    }

    /// One thing that a role needs.
    package struct Permission: Hashable, Sendable {
        package enum Outcome: Hashable, Sendable {
            case granted
            /// In the broker's words.
            case refused(String)
            /// It needs what no coordinator has declared yet.
            case absent
        }

        package var role: Role
        /// “declare operon.events”.
        package var what: String
        package var outcome: Outcome
    }

    /// Who holds the prefix.
    package enum Holder: Hashable, Sendable {
        case nobody
        /// What it answered.
        case coordinator(PrefixHolder)
        /// It is locked, and nobody answered within two seconds.
        case silent
    }

    private let configuration: AMQPConfiguration
    private let roles: [Role]
    private let id: UInt64
    private let names: Topology

    /// `id`: random; it begins no name that anything else uses.
    package init(_ configuration: AMQPConfiguration, roles: [Role], id: UInt64) {
        self.configuration = configuration
        self.roles = roles
        self.id = id
        names = Topology(prefix: configuration.prefix)
    }

    /// Never longer than `limit` for any one answer of the broker's.
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
            }
            if roles.contains(.coordinator) { report.holder = try await holder(session) }
        } catch {
            report.failure = error
        }
        await session.close()
        return report
    }

    // MARK: - What is tried

    /// Something that the broker answers, or closes the channel for.
    struct Step: Sendable {
        let what: String
        let methods: [OutgoingMethod]
        /// The last of the methods is a publish: it comes back, as nobody is there.
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
        // Epochs count from 1, and nothing is published with this key: nobody's messages come here.
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

    private func publish(to exchange: String, _ what: String? = nil) -> Step {
        Step(
            what: what ?? "publish to \(exchange)",
            methods: [.publish(exchange: exchange, routingKey: nobody, isMandatory: true)],
            isPublish: true
        )
    }

    // MARK: - Who holds the prefix

    private func holder(_ session: ProbeSession) async throws(Failure) -> Holder? {
        let lock = Step(
            what: "hold the prefix",
            methods: [.queueDeclare(name: names.lock, arguments: [])]
        )
        switch try await session.attempt(lock) {
        case .done: return .nobody
        case .closed(let reason) where reason.code == CloseReason.resourceLocked: break
        // What it may not do was told among the permissions.
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
