import Foundation
import Operon
import OperonFaultKit
import OperonModel
import OperonRuntime
import Testing

/// Operations that run in a child of their worker.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ChildTests {
    /// The parent knows kinds of these names and never runs them: what it ran would fail.
    private struct Stranger<Name: KindName>: Operon.Operation {
        static var kind: String { Name.text }

        func main(_ context: OperationContext) async throws { throw NotInTheChild() }
    }

    private struct NotInTheChild: Error {}

    private static let kinds: [OperationKind] = [
        .on(Stranger<EchoName>.self), .on(Stranger<TrapName>.self), .on(Stranger<LeaveName>.self),
        .on(Stranger<LingerName>.self), .on(Stranger<StubbornName>.self),
        .on(Stranger<UnknownName>.self), .on(Square.self),
    ]

    private struct Answer: Decodable {
        var text: String
        var process: Int32
        var parent: Int32
        var attempt: Int
        var niceness: Int32
    }

    @Test func `an isolated operation runs in a child and its result comes back`() async throws {
        try await ManualCoordinator.run(kinds: Self.kinds) { coordinator in
            try await coordinator.dispatch(1, "Echo", #"{"text": "häuser"}"#)
            let result = try await coordinator.result(1)

            #expect(result.end == .succeeded)
            let answer = try JSONDecoder().decode(Answer.self, from: Data(result.output.bytes))
            #expect(answer.text == "häuser")
            #expect(answer.parent == getpid())
            #expect(answer.attempt == 3)
            let tail = String(decoding: result.log.tail, as: UTF8.self)
            #expect(tail == "logged häuser\nprinted häuser\n")
            // It is on a way of its own, and may come behind the result.
            #expect(try await coordinator.printed(tail.utf8.count) == tail)
        }
    }

    @Test func `a child is as nice as its operation`() async throws {
        try await ManualCoordinator.run(kinds: Self.kinds) { coordinator in
            try await coordinator.dispatch(1, "Echo", #"{"text": "a"}"#, qualityOfService: .utility)
            let output = Data(try await coordinator.result(1).output.bytes)
            let answer = try JSONDecoder().decode(Answer.self, from: output)
            let own = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
            #expect(answer.niceness == min(19, own + OperonModel.QualityOfService.utility.niceness))
        }
    }

    @Test func `one that is not isolated runs in the worker`() async throws {
        try await ManualCoordinator.run(kinds: Self.kinds) { coordinator in
            try await coordinator.dispatch(1, "Echo", #"{"text": "a"}"#, isIsolated: false)
            let result = try await coordinator.result(1)

            let error = OperationError.thrown(
                type: "NotInTheChild",
                message: "NotInTheChild()",
                payload: Array("{}".utf8)
            )
            #expect(result.end == .failed(error) || result.end == .failed(Self.withoutValue))
        }
    }

    private static let withoutValue = OperationError.thrown(
        type: "NotInTheChild",
        message: "NotInTheChild()",
        payload: []
    )

    @Test(arguments: [("Trap", "{}"), ("Leave", #"{"code": 0}"#), ("Leave", #"{"code": 3}"#)])
    func `a child that dies without a result has crashed, and its worker lives`(
        kind: String,
        input: String
    ) async throws {
        try await ManualCoordinator.run(kinds: Self.kinds) { coordinator in
            try await coordinator.dispatch(1, kind, input)
            let crashed = try await coordinator.result(1)
            try await coordinator.dispatch(2, "Square", #"{"number": 5}"#, isIsolated: false)
            let next = try await coordinator.result(2)

            #expect(crashed.end == .crashed)
            if kind == "Trap" {
                let tail = String(decoding: crashed.log.tail, as: UTF8.self)
                #expect(tail.hasPrefix("about to trap\nand printed\n"))
                #expect(tail.contains("trapped as it should"))
            }
            #expect(next.output.bytes == Array("25".utf8))
        }
    }

    @Test func `a cancel reaches the operation in the child`() async throws {
        try await withFile { file in
            try await ManualCoordinator.run(kinds: Self.kinds) { coordinator in
                try await coordinator.dispatch(1, "Linger", #"{"started": "\#(file)"}"#)
                _ = try await processID(in: file)
                try await coordinator.order({ .cancel($0) }, 1)

                #expect(try await coordinator.result(1).end == .cancelled)
            }
        }
    }

    @Test func `a child over its time has timed out`() async throws {
        try await ManualCoordinator.run(kinds: Self.kinds) { coordinator in
            try await coordinator.dispatch(1, "Linger", timeout: .milliseconds(300))

            #expect(try await coordinator.result(1).end == .failed(.timeout))
        }
    }

    @Test func `a child that ignores everything is killed when its worker is told to stop it`()
        async throws
    {
        try await withFile { file in
            try await ManualCoordinator.run(kinds: Self.kinds) { coordinator in
                try await coordinator.dispatch(1, "Stubborn", #"{"started": "\#(file)"}"#)
                let process = try await processID(in: file)
                try await coordinator.order({ .stop($0) }, 1)
                try await waitForEnd(of: process)
                try await coordinator.dispatch(2, "Square", #"{"number": 5}"#, isIsolated: false)

                #expect(try await coordinator.result(2).end == .succeeded)
            }
        }
    }

    @Test func `code that holds a key is ended with its right to it`() async throws {
        try await withFile { file in
            try await ManualCoordinator.run(kinds: Self.kinds) { coordinator in
                try await coordinator.dispatch(
                    1,
                    "Stubborn",
                    #"{"started": "\#(file)"}"#,
                    isIsolated: false,
                    exclusiveLease: .seconds(5)
                )
                let process = try await processID(in: file)
                #expect(process != getpid())
                coordinator.fallSilent()

                try await waitForEnd(of: process)
            }
        }
    }

    @Test func `a worker that ends takes its children with it`() async throws {
        try await withFile { file in
            let process = NIOBox<pid_t>(0)
            try await ManualCoordinator.run(kinds: Self.kinds) { coordinator in
                try await coordinator.dispatch(1, "Stubborn", #"{"started": "\#(file)"}"#)
                process.value = try await processID(in: file)
            }
            try await waitForEnd(of: process.value)
        }
    }

    @Test func `a program that does not know the kind any more says so`() async throws {
        try await ManualCoordinator.run(kinds: Self.kinds) { coordinator in
            try await coordinator.dispatch(1, "Unknown")

            #expect(try await coordinator.result(1).end == .failed(.kindUnknown("Unknown")))
        }
    }

    @Test func `a program that is not there is no crash`() async throws {
        let program = ChildProgram(path: "/nowhere/at/all", arguments: [], environment: [:])
        try await ManualCoordinator.run(kinds: Self.kinds, program: program) { coordinator in
            try await coordinator.dispatch(1, "Echo", #"{"text": "a"}"#)
            let result = try await coordinator.result(1)

            guard case .failed(.thrown("spawn", _, _)) = result.end else {
                Issue.record("\(result.end)")
                return
            }
        }
    }

    @Test func `an input and an output of the limit pass through files`() async throws {
        let text = String(repeating: "x", count: 900_000)
        try await ManualCoordinator.run(kinds: Self.kinds) { coordinator in
            try await coordinator.dispatch(1, "Echo", #"{"text": "\#(text)"}"#)
            let result = try await coordinator.result(1)

            let answer = try JSONDecoder().decode(Answer.self, from: Data(result.output.bytes))
            #expect(answer.text == text)
        }
    }
}

/// A value that a closure sets.
private final class NIOBox<Value: Sendable>: @unchecked Sendable {
    // Set before it is read, by one task.
    var value: Value

    init(_ value: Value) { self.value = value }
}

private func withFile(_ body: (String) async throws -> Void) async throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: file) }
    try await body(file.path)
}

/// What an operation wrote into its file when it had started; it gives no other signal.
private func processID(in file: String) async throws -> pid_t {
    let deadline = ContinuousClock.now + .seconds(120)
    while true {
        let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
        if text.hasSuffix("\n"), let number = pid_t(text.dropLast()) { return number }
        guard ContinuousClock.now < deadline else { throw CommandFailure("it did not start") }
        try await Task.sleep(for: .milliseconds(10))
    }
}

private func waitForEnd(of process: pid_t) async throws {
    let deadline = ContinuousClock.now + .seconds(120)
    while kill(process, 0) == 0 {
        guard ContinuousClock.now < deadline else { throw CommandFailure("\(process) lives on") }
        try await Task.sleep(for: .milliseconds(10))
    }
}

protocol KindName: Sendable {
    static var text: String { get }
}

enum EchoName: KindName { static let text = "Echo" }
enum TrapName: KindName { static let text = "Trap" }
enum LeaveName: KindName { static let text = "Leave" }
enum LingerName: KindName { static let text = "Linger" }
enum StubbornName: KindName { static let text = "Stubborn" }
enum UnknownName: KindName { static let text = "Unknown" }
