import ConformanceKit
import Foundation

import class Operon.Cluster
import class Operon.OperationQueue
import enum Operon.QueuePriority

/// What a row has to work with: queues and operations of its back end, a journal, gates and a
/// fence.
final class RowTools: Sendable {
    let backEnd: BackEnd
    let journal: Journal
    private let row: String
    private let folder: URL
    private let names = OperationNames()
    private let operonCluster: Cluster?
    private let shared: SharedCluster?
    private let state = Lock(State())

    private struct State {
        var queues: [any QueueUnderTest] = []
        var gates: [Gate] = []
        var fences = 0
    }

    init(_ backEnd: BackEnd, _ row: String, _ cluster: Cluster?, _ shared: SharedCluster?) throws {
        self.backEnd = backEnd
        self.row = row
        operonCluster = cluster
        self.shared = shared
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-\(row)-\(UUID().uuidString.prefix(13))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        journal = try Journal(path: folder.appendingPathComponent("journal").path)
    }

    /// Nothing of it is left in the way of others.
    func clear() async throws {
        let (queues, gates) = state.withLock { ($0.queues, $0.gates) }
        for gate in gates { gate.open() }
        // benign: the system clears its temporary directory.
        defer { try? FileManager.default.removeItem(at: folder) }
        for queue in queues { try await queue.cancelAll() }
    }

    // MARK: - The library

    /// For rows about Operon alone.
    var cluster: Cluster {
        get throws {
            guard let operonCluster else { throw Failure("Foundation has no cluster") }
            return operonCluster
        }
    }

    /// Somebody else who uses the same cluster: another connection to its coordinator, where there
    /// is one.
    var otherCluster: Cluster {
        get throws { try shared?.otherCluster ?? cluster }
    }

    /// A name that no other row uses.
    func name(_ text: String) -> String { "\(row)-\(folder.lastPathComponent.suffix(6))-\(text)" }

    func operonQueue(
        _ name: String = "queue",
        limit: Int? = nil,
        isSuspended: Bool = false
    ) throws -> OperationQueue {
        let queue = OperationQueue(
            name: self.name(name),
            cluster: try cluster,
            maxConcurrentOperationCount: limit,
            isSuspended: isSuspended
        )
        state.withLock { $0.queues.append(OperonQueue(queue, names)) }
        return queue
    }

    // MARK: - Either of them

    func queue(
        _ name: String = "queue",
        limit: Int? = nil,
        isSuspended: Bool = false
    ) -> any QueueUnderTest {
        let queue: any QueueUnderTest
        if let operonCluster {
            queue = OperonQueue(
                OperationQueue(
                    name: self.name(name),
                    cluster: operonCluster,
                    maxConcurrentOperationCount: limit,
                    isSuspended: isSuspended
                ),
                names
            )
        } else {
            queue = FoundationQueue(
                name: self.name(name),
                limit: limit,
                isSuspended: isSuspended
            )
        }
        state.withLock { $0.queues.append(queue) }
        return queue
    }

    /// The same queue, as somebody else has it.
    func other(_ queue: any QueueUnderTest) throws -> any QueueUnderTest {
        guard queue is OperonQueue else { return queue }
        return OperonQueue(OperationQueue(name: queue.name, cluster: try otherCluster), names)
    }

    func play(_ name: String, behind gate: Gate? = nil) -> Play {
        var play = Play(name: name, journal: journal.path)
        play.gate = gate?.path
        return play
    }

    func operation(_ play: Play, _ priority: QueuePriority? = nil) -> any OperationUnderTest {
        guard operonCluster != nil else { return FoundationOperation(play, priority: priority) }
        return OperonOperation(
            play,
            priority: priority,
            names,
            patience: backEnd.patience,
            isMortal: backEnd.isMortal
        )
    }

    func operation(
        _ name: String,
        _ priority: QueuePriority? = nil,
        behind gate: Gate? = nil
    ) -> any OperationUnderTest {
        operation(play(name, behind: gate), priority)
    }

    func operations(_ names: [String]) -> [any OperationUnderTest] {
        names.map { operation($0) }
    }

    // MARK: - Gates and fences

    /// Holds whatever is behind it until it is opened.
    func gate(_ name: String = "gate") -> Gate {
        let gate = Gate(path: folder.appendingPathComponent(name).path)
        state.withLock { $0.gates.append(gate) }
        return gate
    }

    /// Returns when this one runs, by its own word.
    func untilStarted(_ name: String) async throws {
        try await journal.wait(for: "the start of \(name)", within: backEnd.patience) { lines in
            lines.contains { $0.operation == name && $0.event == .started }
        }
    }

    /// Sends another operation through another queue, and returns when it has ended: whatever could
    /// start before it has started by then. It needs a free slot.
    func fence() async throws {
        let number = state.withLock { state in
            state.fences += 1
            return state.fences
        }
        let fence = operation("fence \(number)")
        try await queue("fence \(number)").add(fence)
        try await fence.waitUntilFinished()
    }

    func untilFinished(_ operations: any OperationUnderTest...) async throws {
        try await untilFinished(operations)
    }

    func untilFinished(_ operations: [any OperationUnderTest]) async throws {
        for operation in operations { try await operation.waitUntilFinished() }
    }
}

/// Opened once; it stays open.
struct Gate: Sendable {
    let path: String

    func open() { _ = FileManager.default.createFile(atPath: path, contents: nil) }
}
