import ArgumentParser
import OperonArguments
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTerminal
import UnixSignals

/// Draws `operon top` until somebody quits. It asks the coordinator at each interval, so what is
/// lost on the way is shown at the next one.
struct TopSession {
    private let session: ClientSession
    private let interval: Duration
    private let output = FileOutput.standardOutput
    private let style: TerminalStyle

    /// The most unfinished graphs that are listed; more fill no screen.
    private static let graphsMax = 100
    /// The graphs whose running operations are named: each costs a request.
    private static let namedGraphsMax = 10
    /// The unfinished operations of a graph in each state that are listed.
    private static let operationsMax = 500

    private enum Event: Sendable {
        case tick
        case typed([UInt8])
        /// A signal, or the end of standard input.
        case end(Int32)
    }

    init(_ session: ClientSession, interval: Duration) {
        self.session = session
        self.interval = interval
        style = TerminalStyle(environment: Environment.current, isTerminal: true)
    }

    func run() async throws {
        guard style.overprints else {
            throw Failure(ExitStatus.usage, "operon top needs a terminal that can be overprinted")
        }
        // Whoever is not there is told of before the screen is taken.
        _ = try await session.client.status()
        guard let input = TerminalInput() else {
            throw Failure(ExitStatus.usage, "operon top needs a terminal as its standard input")
        }
        session.news.hold()
        // The alternate screen, without a cursor.
        output.write(Array("\u{1B}[?1049h\u{1B}[?25l".utf8))
        defer {
            output.write(Array("\u{1B}[?25h\u{1B}[?1049l".utf8))
            input.restore()
        }
        let code = try await follow(input)
        if code != ExitStatus.success { throw ExitCode(code) }
    }

    private func follow(_ input: TerminalInput) async throws -> Int32 {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sigwinch)
        let (events, continuation) = AsyncStream.makeStream(of: Event.self)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [interval] in
                while !Task.isCancelled {
                    continuation.yield(.tick)
                    try await Task.sleep(for: interval)
                }
            }
            group.addTask {
                for await piece in input.pieces { continuation.yield(.typed(piece)) }
                continuation.yield(.end(ExitStatus.success))
            }
            group.addTask {
                for await signal in signals {
                    switch signal {
                    case .sigwinch: continuation.yield(.typed([]))
                    case .sigint: continuation.yield(.end(ExitStatus.success))
                    default: continuation.yield(.end(ExitStatus.terminated))
                    }
                }
            }
            defer { group.cancelAll() }
            var screen = TopScreen(style)
            draw(screen)
            for await event in events {
                switch event {
                case .end(let code): return code
                case .tick: await update(&screen)
                case .typed(let bytes):
                    if try await type(bytes, &screen) { return ExitStatus.success }
                }
                draw(screen)
            }
            return ExitStatus.success
        }
    }

    private var size: TerminalSize { output.size() ?? TerminalSize(columns: 80, rows: 24) }

    private func draw(_ screen: TopScreen) {
        // One write, so that no line is torn.
        let lines = screen.lines(size).map { $0 + "\u{1B}[K" }.joined(separator: "\n")
        output.write(Array("\u{1B}[H\(lines)\u{1B}[J".utf8))
    }

    // MARK: - Asking

    /// Errors are shown in the last line; the next interval asks again.
    private func update(_ screen: inout TopScreen) async {
        do throws(ClientError) {
            screen.show(try await snapshot())
            if let graph = screen.openGraph {
                screen.show(try await unfinished(in: graph), of: graph)
            }
        } catch {
            screen.say(error.message)
        }
    }

    private func snapshot() async throws(ClientError) -> ClusterSnapshot {
        let cluster = try await session.client.status()
        var graphs: [GraphView] = []
        var query = GraphQuery()
        repeat {
            let page = try await session.client.graphs(query)
            graphs += page.graphs.filter { !$0.status.isFinished }
            query.after = page.next
        } while query.after != nil && graphs.count < min(cluster.openGraphs, Self.graphsMax)
        var running: [ClusterSnapshot.Running] = []
        for graph in graphs.lazy.filter({ $0.counts.executing > 0 }).prefix(Self.namedGraphsMax) {
            let named = try await progress(of: graph.id)?.running ?? []
            running += named.map { operation in
                ClusterSnapshot.Running(
                    graph: graph.id,
                    name: operation.name,
                    startedAt: operation.startedAt.time
                )
            }
        }
        return ClusterSnapshot(
            cluster: cluster,
            graphs: Array(graphs.prefix(Self.graphsMax)),
            running: running,
            now: cluster.now.time
        )
    }

    private func progress(of graph: UInt32) async throws(ClientError) -> GraphProgressView? {
        let updates = try await session.client.progress(of: String(graph))
        do {
            for try await progress in updates { return progress.view }
        } catch {
            throw error as? ClientError ?? ClientError(.internal, "\(error)")
        }
        return nil
    }

    /// What runs first, then what could, then what waits.
    private func unfinished(in graph: UInt32) async throws(ClientError) -> [OperationView] {
        var operations: [OperationView] = []
        for state in [OperationState.executing, .dispatched, .ready, .pending] {
            var query = OperationQuery()
            query.state = state
            query.limit = Self.operationsMax
            operations += try await session.client.operations(of: String(graph), query).operations
        }
        return operations
    }

    // MARK: - Keys

    /// Returns whether somebody quits.
    private func type(_ bytes: [UInt8], _ screen: inout TopScreen) async throws -> Bool {
        let size = self.size
        for key in TerminalKey.keys(in: bytes) {
            guard let action = screen.pressed(key, size) else { continue }
            if action == .quit { return true }
            do throws(ClientError) {
                try await perform(action, &screen)
            } catch {
                screen.say(error.message)
            }
        }
        return false
    }

    private func perform(
        _ action: TopScreen.Action,
        _ screen: inout TopScreen
    ) async throws(ClientError) {
        let data = session.console.data
        switch action {
        case .quit: break
        case .open(let graph): screen.show(try await unfinished(in: graph), of: graph)
        case .explain(.graph(let graph)):
            let view = try await session.client.graph(String(graph))
            screen.show(title: "Graph \(graph)", data.graph(view))
        case .explain(.operation(let graph, let name)):
            let operation = OperationSelector(graph: String(graph), operation: name)
            let explanation = try await session.client.explain(operation)
            screen.show(title: "\(graph)/\(name)", data.explanation(explanation))
        case .cancel(let row):
            let target: TargetSelector =
                switch row {
                case .graph(let graph): .graph(String(graph))
                case .operation(let graph, let name):
                    .operation(OperationSelector(graph: String(graph), operation: name))
                }
            var request = CancelRequest()
            request.reason = "operon top"
            _ = try await session.client.cancel(target, request)
            screen.say("\(row.selector) is being cancelled.")
        }
    }
}
