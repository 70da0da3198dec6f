import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Workers: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "workers",
        abstract: "List the workers that a coordinator knows.",
        usage: "operon workers [<options>]"
    )

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator) { session in
            let workers = try await session.client.workers()
            // A script goes on with those that are there.
            let there = workers.filter { $0.status != "gone" }
            try session.console.show(List(workers: workers), names: there.map(\.name)) {
                $0.workers(workers)
            }
            if workers.isEmpty {
                session.console.say(["There are no workers. To start one: operon-worker"])
            }
        }
    }

    private struct List: Encodable {
        let workers: [WorkerView]
    }
}
