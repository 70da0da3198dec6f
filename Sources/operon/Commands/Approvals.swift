import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Approvals: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "approvals",
        abstract: "List the external operations of all graphs that wait for somebody.",
        usage: "operon approvals [<options>]",
        discussion: """
            An external operation waits until a person or another system completes it. Its \
            description and its input are the question. To answer: operon complete GRAPH/OPERATION
            """
    )

    @OptionGroup var coordinator: ClientArguments

    /// What `--output json` prints.
    private struct Waiting: Encodable {
        var operations: [OperationDetail] = []
    }

    func run() async throws {
        try await ClientSession.run(coordinator) { session in
            var waiting = Waiting()
            var query = GraphQuery()
            repeat {
                let page = try await session.client.graphs(query)
                for graph in page.graphs where graph.counts.executing > 0 {
                    waiting.operations += try await Self.external(in: graph, session)
                }
                query.after = page.next
            } while query.after != nil
            // The one that has waited longest is first.
            waiting.operations.sort {
                ($0.waitsSince ?? "", $0.operation.index) < (
                    $1.waitsSince ?? "", $1.operation.index
                )
            }
            try session.console.show(waiting, names: waiting.operations.map(\.operation.selector)) {
                $0.approvals(waiting.operations) {
                    QuestionText.lines(summary: $0.summary ?? "", input: $0.input)
                }
            }
            guard let first = waiting.operations.first else {
                return session.console.say(["Nothing waits for anybody."])
            }
            let name = TerminalText.line(first.operation.selector)
            session.console.say(["To answer: operon complete \(name)"])
        }
    }

    private static func external(
        in graph: GraphView,
        _ session: ClientSession
    ) async throws -> [OperationDetail] {
        var found: [OperationDetail] = []
        var query = OperationQuery()
        query.state = .executing
        repeat {
            let page = try await session.client.operations(of: String(graph.id), query)
            for operation in page.operations where operation.kind == Work.externalKind {
                let selector = OperationSelector(
                    graph: String(graph.id),
                    operation: "@\(operation.index)"
                )
                found.append(try await session.client.operation(selector))
            }
            query.after = page.next
        } while query.after != nil
        return found
    }
}

extension OperationDetail {
    /// As text, which is in the order of time.
    fileprivate var waitsSince: String? { attempts.last?.grantedAt.description }
}
