package import Logging
package import NIOCore
package import OperonCore
package import OperonModel
import OperonPorts
import OperonSystem

/// The messages of one queue of the broker, each of them an occurrence.
///
/// The queue belongs to its user, who declares it; this source never declares, binds or changes
/// anything. It needs the right to read the queue. A message is acknowledged when it is stored. One
/// that cannot be an occurrence is rejected without being queued again, so the broker passes it to
/// the dead-letter exchange of the queue, or drops it.
///
/// **Identities.** A message with the property `message-id` has the same identity in every
/// delivery, whatever dies in between: two messages with one id are one occurrence. A message
/// without one gets an identity when it arrives. It keeps that identity if the connection is lost
/// before it is acknowledged, which the body shows. It gets another one, and so may occur twice, if
/// this process dies between storing and acknowledging it, or if the acknowledgement is lost with
/// the connection that it was sent on.
///
/// **The body** is JSON, or text in UTF-8. A content type that begins with `text/` makes it text,
/// even if it could be JSON; `application/json` makes everything else an error.
///
/// It has a connection of its own, which it opens again, after pauses, for ever. A queue that does
/// not exist is waited for. The broker closes a channel whose deliveries stay unanswered for half
/// an hour (RabbitMQ's default); a message that is not stored by then is delivered again.
package struct MessageSource: TriggerSource {
    /// How many messages are on their way to the store.
    package static let prefetchMax: UInt16 = 16
    /// The bytes of a queue's name (AMQP 0-9-1, short strings).
    package static let nameBytesMax = 255

    private let queue: String
    private let configuration: AMQPConfiguration
    private let isJSON: @Sendable ([UInt8]) -> Bool
    private let seed: UInt64
    private let logger: Logger
    private let group: any EventLoopGroup
    private let link: LinkStateMachine.Configuration

    /// - Parameters:
    ///   - isJSON: Whether these bytes are exactly one JSON value in UTF-8.
    ///   - seed: Determines the pauses between attempts to connect.
    /// - Throws: `invalid` for a name that no queue has.
    package init(
        queue: String,
        configuration: AMQPConfiguration,
        isJSON: @escaping @Sendable ([UInt8]) -> Bool,
        seed: UInt64,
        logger: Logger,
        group: any EventLoopGroup,
        link: LinkStateMachine.Configuration = LinkStateMachine.Configuration()
    ) throws(TriggerSourceError) {
        guard !queue.isEmpty, queue.utf8.count <= Self.nameBytesMax else {
            throw TriggerSourceError(
                .invalid,
                "the name of a queue has 1 to \(Self.nameBytesMax) bytes"
            )
        }
        guard !queue.hasPrefix(configuration.prefix) else {
            throw TriggerSourceError(
                .invalid,
                "the queue “\(queue)” belongs to the cluster, whose names begin with"
                    + " “\(configuration.prefix)”"
            )
        }
        var configuration = configuration
        configuration.limits.messageBytes = configuration.limits.payloadBytes
        configuration.sealBytes = 0
        self.queue = queue
        self.configuration = configuration
        self.isJSON = isJSON
        self.seed = seed
        self.logger = logger
        self.group = group
        self.link = link
    }

    package func run(
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws {
        let link = AMQPLink(
            role: MessageRole(names: Topology(prefix: configuration.prefix), queue: queue),
            configuration: configuration,
            machine: link,
            seed: seed,
            logger: logger,
            group: group
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await run(link) }
            group.addTask { try await pass(link, report, status) }
            defer { group.cancelAll() }
            // The link ends when this task is cancelled, or with an error.
            try await group.next()
            try await group.next()
        }
        try Task.checkCancellation()
    }

    private func run(_ link: AMQPLink<MessageRole>) async throws {
        do {
            try await link.run()
        } catch let error as PortError {
            let code: TriggerSourceError.Code =
                error.code == .accessRefused ? .accessRefused : .unreachable
            throw TriggerSourceError(code, error.message)
        }
    }

    private func pass(
        _ link: AMQPLink<MessageRole>,
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        _ status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws {
        var unanswered = UnansweredMessages()
        for await events in link.inbox.stream {
            for event in events {
                try Task.checkCancellation()
                switch event {
                case .ignored: continue
                case .up: status(.observing)
                case .down(let reason): status(.waiting(TriggerSourceError(.unreachable, reason)))
                case .absent:
                    let why = "the broker has no queue “\(queue)”"
                    status(.waiting(TriggerSourceError(.absent, why)))
                case .delivered(let message):
                    let identity = unanswered.identity(of: message)
                    let answer: OutgoingMethod
                    switch occurrence(message, identity) {
                    case .success(let occurrence):
                        try await report(occurrence)
                        answer = .acknowledge(tag: message.delivery.tag)
                    case .failure(let error):
                        status(.refused(error))
                        answer = .reject(tag: message.delivery.tag)
                    }
                    if await !link.answer(answer, attempt: message.attempt) {
                        unanswered.add(message, identity)
                    }
                }
            }
        }
    }

    private func occurrence(
        _ message: MessageRole.Arrived,
        _ identity: String
    ) -> Result<Occurrence, TriggerSourceError> {
        let what = "a message of the queue “\(queue)”"
        guard let body = message.body else {
            return .failure(
                TriggerSourceError(
                    .limitExceeded,
                    "\(what) has \(message.bodyBytes) bytes; at most"
                        + " \(configuration.limits.payloadBytes) are possible"
                )
            )
        }
        let type = message.properties.contentType
        let value: Occurrence.Value
        if type?.hasPrefix("text/") != true, isJSON(body) {
            value = .json(body)
        } else if type != "application/json", let text = String(validating: body, as: UTF8.self) {
            value = .text(text)
        } else {
            let form = type == "application/json" ? "JSON" : "JSON or text in UTF-8"
            return .failure(TriggerSourceError(.unreadable, "\(what) is not \(form)"))
        }
        return Result { () throws(TriggerSourceError) in
            do throws(TriggerSourceError) {
                return try Occurrence(
                    identity: identity,
                    event: [
                        "queue": .text(queue),
                        "messageID": message.properties.messageID.map { .text($0) },
                        "body": value,
                    ]
                )
            } catch {
                throw TriggerSourceError(error.code, "\(what): \(error.message)")
            }
        }
    }
}

/// Identities of messages without `message-id` that were reported, but whose answer could not be
/// sent, because their connection was lost. The broker delivers them again.
private struct UnansweredMessages {
    private struct Entry {
        let body: [UInt8]
        let identity: String
    }

    /// A lost connection leaves no more behind than were on their way; a few may be lost in a row.
    private static let countMax = 4 * Int(MessageSource.prefetchMax)

    private var entries: [Entry] = []

    /// The identity of a message that arrives.
    mutating func identity(of message: MessageRole.Arrived) -> String {
        if let id = message.properties.messageID, !id.isEmpty { return Self.identity(id) }
        if message.delivery.isRedelivered {
            let hash = Self.hash(of: message)
            if let index = entries.firstIndex(where: { $0.body == hash }) {
                return entries.remove(at: index).identity
            }
        }
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<16).map { _ in generator.next() as UInt8 }
        return "message:drawn:\(Self.digits(bytes))"
    }

    /// Notes a message that could not be answered.
    mutating func add(_ message: MessageRole.Arrived, _ identity: String) {
        entries.append(Entry(body: Self.hash(of: message), identity: identity))
        if entries.count > Self.countMax { entries.removeFirst() }
    }

    /// A publisher chooses the id, so it may be anything.
    private static func identity(_ id: String) -> String {
        let isPlain = id.utf8.count <= 128 && id.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        return isPlain
            ? "message:id:\(id)"
            : "message:hash:\(digits(SHA256.hash(of: Array(id.utf8))))"
    }

    private static func hash(of message: MessageRole.Arrived) -> [UInt8] {
        SHA256.hash(of: message.body ?? [])
    }

    private static func digits(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        let text = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }
}

/// The side of a link that only consumes a queue which belongs to somebody else.
private struct MessageRole: LinkRole {
    struct Arrived: Sendable {
        let delivery: Delivery
        /// The attempt to connect whose connection it came over.
        let attempt: UInt64
        let properties: HeaderProperties
        /// `nil`: it is too large.
        let body: [UInt8]?
        let bodyBytes: UInt64
    }

    enum Event: Sendable {
        case up
        case down(reason: String)
        case absent
        case delivered(Arrived)
        case ignored
    }

    let names: Topology
    let queue: String

    func preparation(number: UInt32) -> [OutgoingMethod] {
        [
            .queueCheck(name: queue),
            .prefetch(count: MessageSource.prefetchMax),
            .consumeUntilAnswered(queue: queue, consumer: .messages),
        ]
    }

    func up(number: UInt32) -> Event { .up }

    func down(reason: String) -> Event { .down(reason: reason) }

    func unreachable(reason: String) -> Event? { .down(reason: reason) }

    func absent() -> Event? { .absent }

    /// Only consumers of the topology get such messages, and this side has none of them.
    func message(_ body: [UInt8]) -> Event { .ignored }

    func returned(routingKey: String, exchange: String) -> Event? { nil }

    /// An alarm stops publishers only.
    func blocked(_ isBlocked: Bool, reason: String) -> Event { .ignored }

    func delivery(_ message: MessageAssembler.Message, attempt: UInt64) -> Event? {
        message.delivery.map {
            .delivered(
                Arrived(
                    delivery: $0,
                    attempt: attempt,
                    properties: message.properties,
                    body: message.body,
                    bodyBytes: message.bodyBytes
                )
            )
        }
    }
}
