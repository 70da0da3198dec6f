import ConformanceKit
import Operon

/// A worker that knows what the rows run: `conformance-worker URL PREFIX NAME SLOTS`.
@main struct ConformanceWorker {
    static func main() async throws {
        let arguments = CommandLine.arguments
        try await Worker(
            broker: arguments.count > 1 ? arguments[1] : nil,
            prefix: arguments.count > 2 ? arguments[2] : "operon.",
            name: arguments.count > 3 ? arguments[3] : nil,
            slots: arguments.count > 4 ? Int(arguments[4]) : nil,
            .on(Play.self),
            .on(Square.self),
            .on(Text.self),
            .on(Produce.self),
            .on(Conditional.self),
            shout
        ).run()
    }
}
