import OperonArguments
import OperonCore
import OperonModel
import OperonRuntime
import UnixSignals

/// Handles Ctrl-C: the first cancels the graph and waits, the second kills.
actor Interruption {
    private let graph: GrowingGraph
    private var signal: UnixSignal?
    /// Open once the run must not wait for anything any more.
    nonisolated let killed = Latch()
    /// Open once the graph is cancelled.
    nonisolated let cancelled = Latch()
    /// What the store has not stored, if the run does not wait for it.
    private(set) var unstored: String?

    /// What can never run here, if that ended the run.
    private(set) var deadEnd: String?

    init(_ graph: GrowingGraph) { self.graph = graph }

    /// The exit code for the signal that arrived; `nil`: none did.
    var exitCode: Int32? {
        guard let signal else { return nil }
        return signal == .sigterm ? ExitStatus.terminated : ExitStatus.interrupted
    }

    func received(
        _ signal: UnixSignal,
        _ coordinator: CoordinatorService,
        _ screen: RunScreen
    ) async {
        guard self.signal == nil else {
            killed.open()
            return
        }
        self.signal = signal
        guard await coordinator.query({ $0.graphCount }) > Int(graph.id.rawValue) else {
            // Nothing was submitted yet, so there is nothing to wait for.
            killed.open()
            return
        }
        screen.withdrawPrompt()
        screen.say(
            "Cancelling. Running operations were asked to stop; press Ctrl-C again to kill them."
        )
        await cancel(coordinator, screen, "interrupted")
    }

    /// The reader of standard output has closed its end.
    func lostReader(_ coordinator: CoordinatorService, _ screen: RunScreen) async {
        await cancel(coordinator, screen, "nobody reads the output")
    }

    /// Nothing is left to run but what can never run here.
    func cameToDeadEnd(
        _ sentence: String,
        _ coordinator: CoordinatorService,
        _ screen: RunScreen
    ) async {
        guard signal == nil else { return }
        deadEnd = sentence
        await cancel(coordinator, screen, "it can never run here")
    }

    private func cancel(
        _ coordinator: CoordinatorService,
        _ screen: RunScreen,
        _ reason: String
    ) async {
        defer { cancelled.open() }
        do {
            try await coordinator.cancelRun(graph.id, reason: reason)
        } catch {
            screen.say("warning: \(error)")
        }
    }

    func giveUp(_ unstored: String) {
        self.unstored = unstored
        killed.open()
    }
}
