import ConformanceKit
import Foundation

import class Operon.AnyOperationHandle
import class Operon.OperationHandle
import enum Operon.OperationOutcome
import class Operon.OperationQueue
import enum Operon.Outcome

/// This process.
let ownProcess = getpid()

/// What comes of it when it is sent.
func arrives<Value: Codable>(_ value: Value) throws -> Value {
    try JSONDecoder().decode(Value.self, from: try JSONEncoder().encode(value))
}

extension RowTools {
    /// A queue that nobody gave a name.
    func anonymousQueue() -> any QueueUnderTest {
        guard let cluster = try? cluster else {
            return FoundationQueue(name: nil, limit: nil, isSuspended: false)
        }
        return OperonQueue(OperationQueue(cluster: cluster), OperationNames())
    }
}

extension RowTools {
    /// What it returned, when it has.
    func value<Op>(of handle: OperationHandle<Op>) async throws -> Op.Output {
        try await within(backEnd.patience, "“\(handle.name)” did not end") {
            try await handle.value
        }
    }

    /// What comes of this, in the time that it may take.
    func patiently<Result: Sendable>(
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        try await within(backEnd.patience, "it did not happen", body)
    }

    /// How it ended, when it has.
    @discardableResult
    func end(of handle: AnyOperationHandle) async throws -> Outcome {
        try await within(backEnd.patience, "“\(handle.name)” did not end") {
            try await handle.finalOutcome()
        }
    }

    /// Returns when so many have started.
    func untilStarts(_ count: Int) async throws {
        try await journal.wait(for: "\(count) starts", within: backEnd.patience) { lines in
            lines.filter { $0.event == .started }.count >= count
        }
    }

    /// A place in the stream of events before everything that happens from now on.
    func place() async throws -> UInt64 {
        let marker = try await operonQueue("marker").addOperation(Square(number: 1))
        return try await within(backEnd.patience, "no event") {
            for try await event in marker.events { return event.sequence }
            throw Failure("no event")
        }
    }
}
