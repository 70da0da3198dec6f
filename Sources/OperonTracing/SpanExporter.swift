import DequeModule
import NIOCore
import NIOPosix
package import OperonModel
import OperonPorts
import Synchronization

/// Collects spans and sends them to a collector in batches. Making a span never waits for the
/// collector: spans that do not fit into the queue are dropped, and counted.
package final class SpanExporter: SpanSink {
    private struct State {
        var waiting = Deque<TraceSpan>()
        /// Wakes the sender for what waits; `nil`: nothing waits, or the sender works on it.
        var timer: Scheduled<Void>?
        /// What `finish` interrupts: the pause before a batch is sent again.
        var pause: Task<Void, Never>?
        var isFinishing = false
        var losses = SpanLosses()
    }

    private let state = Mutex(State())
    private let settings: TracingSettings
    private let collector: CollectorClient
    private let wakes: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation
    private let warn: @Sendable (String) -> Void

    /// Pauses before a request is sent again: twice as long each time, up to the maximum.
    private static let pause = Duration.milliseconds(500)
    private static let pauseMax = Duration.seconds(5)
    /// Room for spans of graphs beside a full queue.
    private static let graphSpansMax = 1_024

    /// - Parameter warn: Gets a sentence when spans are lost, and when they are sent again.
    /// - Throws: `TracingError` if a file of certificates cannot be read.
    package init(
        _ settings: TracingSettings,
        version: String,
        warn: @escaping @Sendable (String) -> Void
    ) throws(TracingError) {
        self.settings = settings
        self.warn = warn
        collector = try CollectorClient(settings, version: version)
        (wakes, waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    // MARK: - Taking

    package var linksMax: Int { settings.linksMax }

    package func isSampled(_ trace: TraceContext.TraceID, parent: TraceContext?) -> Bool {
        settings.sampler.isSampled(trace, parent: parent)
    }

    package func take(_ spans: [TraceSpan]) {
        let warning = state.withLock { state in
            var dropped = 0
            for span in spans {
                let max = settings.queueMax + (span.isOfGraph ? Self.graphSpansMax : 0)
                if state.isFinishing || state.waiting.count >= max {
                    dropped += 1
                } else {
                    state.waiting.append(span)
                }
            }
            if state.waiting.count >= settings.batchMax { waker.yield() }
            setTimer(&state)
            return dropped > 0 ? state.losses.dropped(dropped) : nil
        }
        if let warning { warn(warning) }
    }

    /// What waits is sent after the pause, at the latest.
    private func setTimer(_ state: inout State) {
        guard !state.waiting.isEmpty, state.timer == nil, !state.isFinishing else { return }
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        state.timer = loop.scheduleTask(in: TimeAmount(settings.pause)) { [weak self] in
            guard let self else { return }
            self.state.withLock { $0.timer = nil }
            self.waker.yield()
        }
    }

    // MARK: - Sending

    /// Sends until `finish`, and then what is left. Cancelling its task ends that.
    package func run() async {
        for await _ in wakes {
            repeat { await send(takeBatch()) } while isFull && !Task.isCancelled
            // What came meanwhile, less than a batch, waits for its own pause.
            state.withLock { setTimer(&$0) }
        }
        while !Task.isCancelled {
            let batch = takeBatch()
            guard !batch.isEmpty else { break }
            await send(batch)
        }
        let warning = state.withLock { $0.losses.ended(waiting: $0.waiting.count) }
        if let warning { warn(warning) }
        await collector.close()
    }

    /// Takes no more spans, and has `run` send what is left.
    package func finish() {
        let (timer, pause) = state.withLock { state in
            state.isFinishing = true
            defer { state.timer = nil }
            return (state.timer, state.pause)
        }
        timer?.cancel()
        pause?.cancel()
        waker.finish()
    }

    private var isFull: Bool { state.withLock { $0.waiting.count >= settings.batchMax } }

    private func takeBatch() -> [TraceSpan] {
        state.withLock { state in
            let count = min(settings.batchMax, state.waiting.count)
            let batch = Array(state.waiting.prefix(count))
            state.waiting.removeFirst(count)
            return batch
        }
    }

    private func send(_ batch: [TraceSpan]) async {
        guard !batch.isEmpty else { return }
        let body = collector.body(of: batch)
        let end = ContinuousClock.now + settings.patience
        var pause = Self.pause
        while true {
            let refusal: CollectorClient.Refusal
            do throws(CollectorClient.Refusal) {
                let rejection = try await collector.post(body)
                return tell { $0.sent(batch.count, rejection) }
            } catch {
                refusal = error
            }
            let wait = max(refusal.retryAfter ?? .zero, pause * Double.random(in: 0.5...1))
            // A program that ends waits for a collector that is busy, not for one that is away.
            let isWorth = refusal.isBusy || (refusal.isRetryable && !isFinishing)
            guard isWorth, !Task.isCancelled, ContinuousClock.now + wait < end else {
                return tell { $0.lost(batch.count, refusal.why) }
            }
            await sleep(isFinishing ? min(wait, Self.pause) : wait)
            pause = min(pause * 2, Self.pauseMax)
        }
    }

    private var isFinishing: Bool { state.withLock { $0.isFinishing } }

    /// Returns after that time, or when `finish` is called, or when the task is cancelled.
    private func sleep(_ time: Duration) async {
        // Cancelled: the pause is over.
        let pause = Task { do { try await Task.sleep(for: time) } catch {} }
        let isLate = state.withLock { state in
            defer { state.pause = pause }
            return state.isFinishing && time > Self.pause
        }
        if isLate { pause.cancel() }
        await withTaskCancellationHandler {
            await pause.value
        } onCancel: {
            pause.cancel()
        }
        state.withLock { $0.pause = nil }
    }

    private func tell(_ change: (inout SpanLosses) -> String?) {
        let warning = state.withLock { change(&$0.losses) }
        if let warning { warn(warning) }
    }
}
