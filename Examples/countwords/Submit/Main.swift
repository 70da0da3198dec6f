import Operon

/// A worker program needs this type, too: in your package, put it in a library that both import.
struct CountWord: Operation {
    var word: String
    var text: String

    func main(_ context: OperationContext) async throws -> Int {
        text.split(separator: " ").count { $0 == word }
    }
}

@main struct Program {
    static func main() async {
        let url = CommandLine.arguments.dropFirst().first
        let cluster = url.map { Cluster.remote($0) } ?? .inProcess
        await cluster.main {
            try await countWhales(OperationQueue(name: "words", cluster: cluster))
        }
    }

    static func countWhales(_ queue: OperationQueue) async throws {
        let lines = ["there she blows", "the whale the whale", "a white whale"]
        let counts = try await queue.addOperations(lines.map { CountWord(word: "whale", text: $0) })
        let sum = try await queue.addLocal(after: counts) { context in
            try context.dependencies.reduce(0) { $0 + (try context.output(of: $1, as: Int.self)) }
        }
        print("The whale is named \(try await sum.value) times.")
    }
}
