import Foundation
import Glibc
import Operon

/// A worker whose operations behave as badly as tests need it: `test-worker URL PREFIX NAME SLOTS`.
@main struct TestWorker {
    static func main() async throws {
        let arguments = CommandLine.arguments
        try await Worker(
            broker: arguments.count > 1 ? arguments[1] : nil,
            prefix: arguments.count > 2 ? arguments[2] : "operon.",
            name: arguments.count > 3 ? arguments[3] : nil,
            slots: arguments.count > 4 ? Int(arguments[4]) : nil,
            .on(Echo.self),
            .on(Trap.self),
            .on(Leave.self),
            .on(Linger.self),
            .on(Stubborn.self),
            .on(Gated.self)
        ).run()
    }
}

/// Returns what it was given, and says who ran it.
struct Echo: Operon.Operation {
    struct Answer: Codable, Sendable {
        var text: String
        var process: Int32
        var parent: Int32
        var attempt: Int
        var niceness: Int32
    }

    var text: String

    func main(_ context: OperationContext) async throws -> Answer {
        context.log("logged \(text)")
        print("printed \(text)")
        return Answer(
            text: text,
            process: getpid(),
            parent: getppid(),
            attempt: context.attempt,
            niceness: getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
        )
    }
}

/// Takes its process with it.
struct Trap: Operon.Operation {
    func main(_ context: OperationContext) async throws {
        context.log("about to trap")
        print("and printed")
        fatalError("trapped as it should")
    }
}

/// Ends its process as if all were well.
struct Leave: Operon.Operation {
    var code: Int32

    func main(_ context: OperationContext) async throws {
        exit(code)
    }
}

/// Runs until it is asked to stop. Says so in a file when it has started.
struct Linger: Operon.Operation {
    var started: String?

    func main(_ context: OperationContext) async throws {
        if let started { try Data("\(getpid())\n".utf8).write(to: URL(fileURLWithPath: started)) }
        try await Task.sleep(for: .seconds(600))
    }
}

/// Runs on, whatever it is asked. Says so in a file when it has started.
struct Stubborn: Operon.Operation {
    var started: String

    func main(_ context: OperationContext) async throws {
        try Data("\(getpid())\n".utf8).write(to: URL(fileURLWithPath: started))
        while true { usleep(100_000) }
    }
}

/// Runs until a file is there. Says in another when it has started.
struct Gated: Operon.Operation {
    var started: String
    var go: String

    func main(_ context: OperationContext) async throws {
        try Data("\(context.attempt)\n".utf8).write(to: URL(fileURLWithPath: started))
        while access(go, F_OK) != 0 { usleep(20_000) }
    }
}
