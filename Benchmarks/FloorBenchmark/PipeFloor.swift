import ArgumentParser
import Foundation
import Logging
import NIOPosix
import OperonAMQP
import OperonModel
import OperonPorts

/// Operations through the broker and back without anything that decides: a dispatch to a worker's
/// own queue, an event back, and no more than `credit` on their way to one worker.
struct PipeFloor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pipe",
        abstract: "Messages to workers in processes of their own, and back."
    )

    @OptionGroup var pipe: PipeOptions

    @Option(help: "Operations in all.")
    var operations = 100_000

    @Option(help: "Operations in one message.")
    var perMessage = 1

    @Option(help: "Operations on their way to one worker.")
    var credit = 64

    func run() async throws {
        let messages = operations / perMessage
        let pipe = try await Pipe.open(pipe)
        // At least one message is on its way, however many operations it holds.
        let window = max(1, credit / perMessage)
        let started = ContinuousClock.now
        await pipe.exchange(messages: messages, window: window, bodyBytes: 200 * perMessage)
        let seconds = (ContinuousClock.now - started).seconds
        await pipe.close()
        printJSON([
            ("name", "\"pipe\""), ("operations", "\(messages * perMessage)"),
            ("perMessage", "\(perMessage)"), ("workers", "\(pipe.workers.count)"),
            ("seconds", rounded(seconds)),
            ("operationsPerSecond", rounded(Double(messages * perMessage) / seconds)),
        ])
    }
}

/// One message at a time to one worker: what two hops through the broker take.
struct ChainFloor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "chain",
        abstract: "One message at a time to one worker, and back."
    )

    @OptionGroup var pipe: PipeOptions

    @Option(help: "Links of the chain.")
    var links = 1_000

    func run() async throws {
        var options = pipe
        options.workers = 1
        let pipe = try await Pipe.open(options)
        await pipe.exchange(messages: 100, window: 1, bodyBytes: 200)
        var durations: [Double] = []
        for _ in 0..<links {
            let started = ContinuousClock.now
            await pipe.exchange(messages: 1, window: 1, bodyBytes: 200)
            durations.append((ContinuousClock.now - started).seconds * 1e6)
        }
        await pipe.close()
        durations.sort()
        printJSON([
            ("name", "\"chain\""), ("links", "\(links)"),
            ("microsecondsP50", rounded(durations[links / 2])),
            ("microsecondsP99", rounded(durations[links * 99 / 100])),
        ])
    }
}

struct PipeOptions: ParsableArguments {
    @Option(help: "The broker; by default what OPERON_TEST_BROKER says.")
    var broker: String?

    @Option(help: "Worker processes.")
    var workers = 2

    func url() throws -> String {
        guard let url = broker ?? ProcessInfo.processInfo.environment["OPERON_TEST_BROKER"] else {
            throw ValidationError("name a broker with --broker or OPERON_TEST_BROKER")
        }
        return url
    }
}

/// A coordinator's transport and the worker processes that answer it.
final class Pipe {
    let workers: [WorkerAddress]
    private let transport: AMQPCoordinatorTransport
    private var events: AsyncStream<[CoordinatorTransportEvent]>.Iterator
    private let running: Task<Void, any Error>
    private let processes: [Process]

    private init(
        workers: [WorkerAddress],
        transport: AMQPCoordinatorTransport,
        events: AsyncStream<[CoordinatorTransportEvent]>.Iterator,
        running: Task<Void, any Error>,
        processes: [Process]
    ) {
        self.workers = workers
        self.transport = transport
        self.events = events
        self.running = running
        self.processes = processes
    }

    /// Returns when every worker has said hello.
    static func open(_ options: PipeOptions) async throws -> Pipe {
        let url = try options.url()
        let prefix = "floor.\(UInt32.random(in: 0...UInt32.max))."
        let transport = AMQPCoordinatorTransport(
            configuration: try AMQPConfiguration(url: url, prefix: prefix),
            epoch: Epoch(rawValue: 1),
            seed: 1,
            logger: quietLogger(),
            group: MultiThreadedEventLoopGroup.singleton
        )
        let running = Task { try await transport.run() }
        var events = transport.events.makeAsyncIterator()
        var processes: [Process] = []
        var workers: [WorkerAddress] = []
        while workers.count < options.workers, let batch = await events.next() {
            for event in batch {
                switch event {
                case .up:
                    // Not before: a worker says hello once, and somebody must be there to hear it.
                    guard processes.isEmpty else { break }
                    for _ in 0..<options.workers {
                        processes.append(try startWorker(url: url, prefix: prefix))
                    }
                case .message(let body):
                    if let worker = address(body) { workers.append(worker) }
                case .envelope, .down, .returned, .blocked: break
                }
            }
        }
        // Without an error here the connection was closed by nobody.
        if workers.count < options.workers { try await running.value }
        return Pipe(
            workers: workers,
            transport: transport,
            events: events,
            running: running,
            processes: processes
        )
    }

    /// Sends `messages` of which at most `window` wait for the answer of one worker.
    func exchange(messages: Int, window: Int, bodyBytes: Int) async {
        var body = [UInt8](repeating: 0x6F, count: bodyBytes)
        var sent = 0
        for _ in 0..<window {
            for (index, worker) in workers.enumerated() where sent < messages {
                body[0] = UInt8(index)
                await transport.send(body, to: worker, priority: 2)
                sent += 1
            }
        }
        var answered = 0
        while answered < messages, let batch = await events.next() {
            for case .message(let answer) in batch {
                answered += 1
                guard sent < messages else { continue }
                body[0] = answer[0]
                await transport.send(body, to: workers[Int(answer[0])], priority: 2)
                sent += 1
            }
        }
    }

    func close() async {
        for worker in workers { await transport.send([], to: worker, priority: 4) }
        await transport.close()
        running.cancel()
        for process in processes { process.waitUntilExit() }
    }

    private static func startWorker(url: String, prefix: String) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["pipe-worker", "--prefix", prefix]
        // The address has a password, which the arguments would show to everybody.
        process.environment = ProcessInfo.processInfo.environment
            .merging(["OPERON_TEST_BROKER": url]) { $1 }
        try process.run()
        return process
    }

    private static func address(_ hello: [UInt8]) -> WorkerAddress? {
        let parts = String(decoding: hello, as: UTF8.self).split(separator: " ")
        guard parts.count == 2, let incarnation = Incarnation(text: parts[0]),
            let connection = UInt32(parts[1])
        else { return nil }
        return WorkerAddress(incarnation: incarnation, connection: connection)
    }
}

/// Answers each message with one of the same size. An empty one ends it.
struct PipeWorker: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pipe-worker",
        shouldDisplay: false
    )

    @OptionGroup var pipe: PipeOptions

    @Option var prefix: String

    func run() async throws {
        let incarnation = Incarnation(rawValue: .random(in: 1...UInt64.max))
        let transport = AMQPWorkerTransport(
            configuration: try AMQPConfiguration(url: try pipe.url(), prefix: prefix),
            incarnation: incarnation,
            seed: incarnation.rawValue,
            logger: quietLogger(),
            group: MultiThreadedEventLoopGroup.singleton
        )
        let running = Task { try await transport.run() }
        events: for await batch in transport.events {
            for event in batch {
                switch event {
                case .up(let connection):
                    await transport.send(
                        Array("\(incarnation) \(connection)".utf8),
                        lane: .events
                    )
                case .message(let body):
                    guard !body.isEmpty else { break events }
                    await transport.send(body, lane: .events)
                case .envelope, .down, .noCoordinator, .returned, .blocked: break
                }
            }
        }
        await transport.close()
        try await running.value
    }
}

private func quietLogger() -> Logger {
    var logger = Logger(label: "floor") { StreamLogHandler.standardError(label: $0) }
    logger.logLevel = .warning
    return logger
}
