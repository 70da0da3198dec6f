import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// What a worker would refuse is refused before it is accepted.
struct DispatchSizeTests {
    private func refusal(_ operations: [OperationDescription]) -> Refusal? {
        do throws(Refusal) {
            _ = try CompiledGraph.compile(GraphDescription(name: "g", operations: operations))
            return nil
        } catch {
            return error
        }
    }

    private func command(
        _ name: String,
        after dependencies: [String] = [],
        _ change: (inout CommandDescription) -> Void = { _ in }
    ) -> OperationDescription {
        var command = CommandDescription(arguments: ["true"])
        change(&command)
        var operation = OperationDescription(name: name, work: .command(command))
        operation.dependencies = dependencies.map { DependencyDescription($0) }
        return operation
    }

    // MARK: The operation itself

    @Test func `every text of a command counts`() {
        let long = String(repeating: "x", count: 2 << 20)
        let changes: [(inout CommandDescription) -> Void] = [
            { $0.arguments = ["true", long] }, { $0.environment = ["A": long] },
            { $0.environment = [long: ""] }, { $0.directory = long },
            { $0.inheritEnvironment = Array(repeating: "PATH", count: 200_000) },
            // They have no bytes, and each is one part of a message.
            { $0.arguments = ["true"] + Array(repeating: "", count: 300_000) },
            { command in
                for number in 0..<100_000 { command.environment["\(number)"] = "" }
            },
        ]
        for (place, change) in changes.enumerated() {
            guard case .limitExceeded(.payloadBytes, _, _)? = refusal([command("a", change)])
            else {
                Issue.record("change \(place) was accepted")
                continue
            }
        }
        #expect(
            refusal([command("a") { $0.directory = String(repeating: "d", count: 4_096) }]) == nil
        )
    }

    @Test func `the type of an input counts`() {
        let type = String(repeating: "t", count: 2 << 20)
        let input = Payload(contentType: type, bytes: [1])
        let operation = OperationDescription(name: "a", work: .registered(kind: "k", input: input))
        guard case .limitExceeded(.payloadBytes, _, _)? = refusal([operation]) else {
            Issue.record("it was accepted")
            return
        }
    }

    // MARK: Its inputs

    @Test func `an operation may depend on 270,000 that leave nothing`() {
        let names = (0..<270_000).map { "w\($0)" }
        let waits = names.map { OperationDescription(name: $0, work: .wait(.zero)) }

        #expect(refusal(waits + [command("all", after: names)]) == nil)
    }

    @Test func `an operation with more inputs than a message can list is refused by name`() {
        let names = (0..<270_000).map { "c\($0)" }
        let commands = names.map { command($0) }

        guard
            case .limitExceeded(.inputListBytes, _, let maximum)? = refusal(
                commands + [command("all", after: names)]
            )
        else {
            Issue.record("it was accepted")
            return
        }
        #expect(maximum == 6 << 20)
        // What does nothing with outputs is sent none.
        var join = OperationDescription(name: "all", work: .nothing)
        join.dependencies = names.map { DependencyDescription($0) }
        #expect(refusal(commands + [join]) == nil)
    }

    @Test func `the name of an input is no longer than a worker reads`() {
        let name = String(repeating: "g", count: 250) + "/" + String(repeating: "o", count: 10)
        let refused = Refusal.limitExceeded(limit: .nameBytes, value: 261, maximum: 256)

        #expect(refusal([command("a", after: [name])]) == refused)
    }
}
