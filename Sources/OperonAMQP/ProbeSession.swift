import NIOCore
import NIOPosix
import NIOSSL
import OperonModel
import OperonPorts

/// The connection of a probe. It performs one step at a time and waits for its answer.
///
/// `@unchecked Sendable`: all mutable state is used on `loop` only.
final class ProbeSession: @unchecked Sendable {
    /// The result of a step.
    enum Answer: Sendable {
        case done
        /// The broker refused the step by closing the channel.
        case closed(CloseReason)
    }

    private let configuration: AMQPConfiguration
    private let loop: any EventLoop
    private let limit: Duration
    private var handler: ProbeHandler?
    /// One handler for each address that is tried. Never iterated.
    private var handlers: [ObjectIdentifier: ProbeHandler] = [:]

    init(_ configuration: AMQPConfiguration, loop: any EventLoop, limit: Duration) {
        self.configuration = configuration
        self.loop = loop
        self.limit = limit
    }

    // MARK: - Connecting

    func connect() async -> BrokerProbe.Report {
        var report = BrokerProbe.Report()
        let startedAt = NIODeadline.now()
        let channel: any Channel
        let handler: ProbeHandler.Box
        do {
            (channel, handler) = try await open()
        } catch let error as BrokerProbe.Failure {
            report.failure = error
            return report
        } catch {
            report.failure = BrokerProbe.Failure(stage: .connecting, reason: error.sentence)
            return report
        }
        let elapsed = NIODeadline.now() - startedAt
        report.connectedAfter = .nanoseconds(elapsed.nanoseconds)
        let login: ProbeHandler.Login
        do {
            login = try await within(limit) { promise in
                handler.value.begin(promise)
            }
        } catch {
            login = ProbeHandler.Login(failure: .failure(error, .greeting))
        }
        report.product = login.product
        report.version = login.version
        report.failure = login.failure
        report.isLoggedIn = login.failure == nil
        report.certificate = await certificate(of: channel)
        return report
    }

    private func open() async throws -> (any Channel, ProbeHandler.Box) {
        let address = configuration.address
        let context: NIOSSLContext?
        do {
            context = try address.tls.map { try $0.context() }
        } catch {
            throw BrokerProbe.Failure(stage: .encrypting, reason: "it cannot be set up: \(error)")
        }
        let seconds = max(1, limit.components.seconds)
        let configuration = configuration
        let channel = try await ClientBootstrap(group: loop)
            .connectTimeout(.seconds(seconds))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let context {
                        let handler = try address.encryption(context)
                        try channel.pipeline.syncOperations.addHandler(handler)
                    }
                    let handler = try ProbeHandler(configuration)
                    try channel.pipeline.syncOperations.addHandler(handler)
                    self.handlers[ObjectIdentifier(channel)] = handler
                }
            }
            .connect(host: address.host, port: address.port).get()
        let box = try await loop.submit {
            // Not taken from the pipeline, which is already empty if the other side has closed the
            // connection. The handler knows the reason.
            guard let handler = self.handlers[ObjectIdentifier(channel)] else {
                throw ProbeError("the connection was closed")
            }
            self.handler = handler
            self.handlers = [:]
            return ProbeHandler.Box(value: handler)
        }.get()
        return (channel, box)
    }

    private func certificate(of channel: any Channel) async -> BrokerProbe.Certificate? {
        guard configuration.address.tls != nil else { return nil }
        let found = try? await loop.submit {
            let handler = try channel.pipeline.syncOperations.handler(type: NIOSSLHandler.self)
            return handler.peerCertificate.map {
                BrokerProbe.Certificate(
                    validFrom: Int64($0.notValidBefore),
                    validUntil: Int64($0.notValidAfter)
                )
            }
        }.get()
        return found ?? nil
    }

    // MARK: - Trying

    func perform(
        _ step: BrokerProbe.Step
    ) async throws(BrokerProbe.Failure) -> BrokerProbe.Permission.Outcome {
        switch try await attempt(step) {
        case .done: .granted
        case .closed(let reason) where reason.code == CloseReason.notFound: .absent
        case .closed(let reason): .refused(reason.text)
        }
    }

    func attempt(_ step: BrokerProbe.Step) async throws(BrokerProbe.Failure) -> Answer {
        do {
            return try await within(limit) { promise in
                self.handler?.attempt(step, promise) ?? promise.fail(ProbeError("closed"))
            }
        } catch {
            throw .failure(error, .later)
        }
    }

    /// Sends a question to a queue; `nil` if no answer came in time.
    func ask(
        _ queue: String,
        replyTo: String,
        within limit: Duration
    ) async throws(BrokerProbe.Failure) -> [UInt8]? {
        let answer: [UInt8]?? = try? await within(limit) { promise in
            self.handler?.ask(queue, replyTo: replyTo, promise)
                ?? promise.fail(ProbeError("closed"))
        }
        return answer ?? nil
    }

    func close() async {
        _ = try? await loop.submit { self.handler?.close() }.get()
    }

    /// Runs `body` on the loop. Fails when the time is over.
    private func within<Value: Sendable>(
        _ limit: Duration,
        _ body: @escaping @Sendable (EventLoopPromise<Value>) -> Void
    ) async throws -> Value {
        let promise = loop.makePromise(of: Value.self)
        loop.execute { body(promise) }
        let timer = loop.scheduleTask(in: .nanoseconds(limit.nanoseconds)) {
            promise.fail(ProbeError("no answer within \(limit.components.seconds) s"))
        }
        defer { timer.cancel() }
        return try await promise.futureResult.get()
    }
}

/// Why a probe cannot continue.
struct ProbeError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

extension BrokerProbe.Failure: Error {
    fileprivate static func failure(_ error: any Error, _ stage: Stage) -> Self {
        (error as? Self) ?? Self(stage: stage, reason: error.sentence)
    }
}
