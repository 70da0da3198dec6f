/// The faults of a chaos run, with their times on the clock of the ledger.
package struct FaultLog: Sendable {
    package struct Entry: Sendable {
        package let kind: FaultKind
        /// The worker that it hit; `nil`: it hit the whole cluster.
        package let worker: String?
        package let begin: Duration
        package let end: Duration
        /// `nil`: there was nothing to recover.
        package let recovery: Duration?

        package init(
            _ kind: FaultKind,
            worker: String?,
            begin: Duration,
            end: Duration,
            recovery: Duration?
        ) {
            self.kind = kind
            self.worker = worker
            self.begin = begin
            self.end = end
            self.recovery = recovery
        }
    }

    package private(set) var entries: [Entry] = []

    package init(_ entries: [Entry] = []) { self.entries = entries }

    package mutating func append(_ entry: Entry) { entries.append(entry) }

    /// How long a fault may cost attempts after its end: a worker that was silent is given up a
    /// lease after it was last heard, and each side first has to connect again.
    private static let aftermath = Duration.seconds(20)

    /// Whether a fault can have ended an attempt of this worker that ran from `start` to `end` at
    /// most.
    package func explainsEnd(of worker: String, from start: Duration, to end: Duration) -> Bool {
        entries.contains { fault in
            (fault.worker ?? worker) == worker && fault.begin <= end
                && fault.end + Self.aftermath >= start
        }
    }

    // MARK: - Times

    /// The recovery times of one kind, the shortest first.
    package func recoveries(_ kind: FaultKind) -> [Duration] {
        entries.filter { $0.kind == kind }.compactMap(\.recovery).sorted()
    }

    /// The nearest rank: the smallest of the sorted times that `percent` of them do not exceed.
    package static func percentile(_ percent: Int, of sorted: [Duration]) -> Duration? {
        guard !sorted.isEmpty else { return nil }
        let rank = (sorted.count * percent + 99) / 100
        return sorted[max(rank, 1) - 1]
    }

    /// Kinds whose 99th percentile exceeds their limit.
    package var overLimit: [FaultKind] {
        FaultKind.allCases.filter { kind in
            guard let limit = kind.limit else { return false }
            return Self.percentile(99, of: recoveries(kind)).map { $0 > limit } ?? false
        }
    }

    /// A row for each kind: how often it occurred, and how long the cluster took to recover.
    package var table: [String] {
        let head = "fault".padded(to: 40) + "   count      p50      p99      max    limit"
        return [head]
            + FaultKind.allCases.map { kind in
                let times = recoveries(kind)
                let count = entries.count { $0.kind == kind }
                let cells = [
                    Self.percentile(50, of: times), Self.percentile(99, of: times), times.last,
                    kind.limit,
                ]
                return kind.rawValue.padded(to: 40) + "\(count)".leading(8)
                    + cells.map { ($0?.secondsText ?? "-").leading(9) }.joined()
            }
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }

    fileprivate func leading(_ width: Int) -> String {
        String(repeating: " ", count: max(0, width - count)) + self
    }
}

extension Duration {
    /// Seconds with two digits behind the point.
    package var secondsText: String {
        let hundredths = Int((self / .milliseconds(10)).rounded())
        let (whole, rest) = abs(hundredths).quotientAndRemainder(dividingBy: 100)
        return "\(hundredths < 0 ? "-" : "")\(whole).\(rest < 10 ? "0" : "")\(rest) s"
    }
}
