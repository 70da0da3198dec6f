package import OperonModel

/// Shows the progress of a run to a person. It keeps the counters, and writes them as one line per
/// group on a terminal, or as one line per change of state where overprinting is impossible.
///
/// It has no clock and no task. The caller passes the time, calls `tick` at least as often as the
/// display should change, and calls `finish` once at the end.
package actor ProgressDisplay {
    private var model: ProgressModel
    /// The repeated operations, whose elements the groups of `model` count, too.
    private var repeated: ProgressModel
    /// How many tenths of each repeated operation a line has told; `nil`: it has not begun.
    private var tenthsTold: [Int?] = []
    private var printer: LinePrinter
    private let line: ProgressLine
    private let change: StateChangeLine
    private let isQuiet: Bool
    private var isFinished = false

    /// - Parameter isQuiet: counts, but shows neither progress nor changes of state; `print` still
    ///   prints.
    package init(printer: LinePrinter, startedAt: Timestamp, isQuiet: Bool = false) {
        model = ProgressModel(startedAt: startedAt)
        repeated = ProgressModel(startedAt: startedAt)
        self.printer = printer
        self.isQuiet = isQuiet
        line = ProgressLine(style: printer.style)
        change = StateChangeLine(style: printer.style)
    }

    /// The current counters.
    package var progress: ProgressModel { model }

    package func addGroup(name: String) -> Int { model.addGroup(name: name) }

    package func operationsAdded(
        _ count: Int,
        to group: Int,
        in phase: ProgressPhase = .pending,
        work: Double
    ) {
        model.operationsAdded(count, to: group, in: phase, work: work)
    }

    /// Adds a repeated operation, and returns its number, from 0. Its elements are shown together.
    package func addRepeated(name: String) -> Int {
        tenthsTold.append(nil)
        return repeated.addGroup(name: name)
    }

    /// Counts elements of a repeated operation, which were added to a group before.
    package func elementsAdded(
        _ count: Int,
        to number: Int,
        in phase: ProgressPhase = .pending,
        work: Double
    ) {
        repeated.operationsAdded(count, to: number, in: phase, work: work)
    }

    /// A change of state of one operation.
    package struct Move: Sendable {
        let name: String
        let old: ProgressPhase
        let new: ProgressPhase
        let work: Double
        let duration: Duration?
        let detail: String
        /// The number of the repeated operation of which this is an element.
        let repeated: Int?

        package init(
            _ name: String,
            from old: ProgressPhase,
            to new: ProgressPhase,
            work: Double,
            duration: Duration? = nil,
            detail: String = "",
            repeated: Int? = nil
        ) {
            self.repeated = repeated
            self.name = name
            self.old = old
            self.new = new
            self.work = work
            self.duration = duration
            self.detail = detail
        }
    }

    /// Counts changes of state. Without overprinting it prints a line for each operation that
    /// starts or ends; not for other changes, and not without `areNews`. An element of a repeated
    /// operation has a line if it fails; otherwise there is a line for each tenth of all elements.
    package func operationsMoved(
        _ moves: [Move],
        in group: Int,
        at now: Timestamp,
        areNews: Bool = true
    ) {
        var lines: [String] = []
        for move in moves {
            model.operationMoved(in: group, from: move.old, to: move.new, work: move.work, at: now)
            if let number = move.repeated {
                repeated.operationMoved(
                    in: number,
                    from: move.old,
                    to: move.new,
                    work: move.work,
                    at: now
                )
                if areNews, !isQuiet, !printer.overprints, hasNewTenth(number) {
                    let counts = repeated.groups[number]
                    lines.append(change.text(for: model.groups[group], elements: counts))
                }
                if move.new != .failed { continue }
            }
            guard areNews, !isQuiet, !printer.overprints,
                move.new == .executing || move.new.isFinished
            else { continue }
            lines.append(
                change.text(
                    for: model.groups[group],
                    operation: move.name,
                    phase: move.new,
                    duration: move.duration,
                    detail: move.detail
                )
            )
        }
        if printer.overprints { redraw(at: now) } else { printer.print(lines) }
    }

    /// Shows counts of a group and of repeated operations, which replace those before them. It says
    /// nothing where overprinting is impossible, because it does not know what has moved.
    package func counted(_ view: GraphProgressView, in group: Int, at now: Timestamp) {
        model.counted(view.graph.counts, in: group, at: now)
        repeated.counted(view.repeated, at: now)
        redraw(at: now)
    }

    /// Prints lines above the progress. Untrusted text must go through `TerminalText` first.
    package func print(_ lines: [String], at now: Timestamp) {
        printer.print(lines)
        redraw(at: now)
    }

    /// Redraws if a redraw is due.
    package func tick(at now: Timestamp) { redraw(at: now) }

    /// Draws the final state and leaves it on the screen. Nothing is drawn after it, even if `tick`
    /// is called again.
    package func finish(at now: Timestamp) {
        guard !isQuiet, !isFinished else { return }
        isFinished = true
        let lines = self.lines(at: now)
        printer.finish(lines: lines)
    }

    private func redraw(at now: Timestamp) {
        guard !isQuiet, !isFinished else { return }
        let lines = self.lines(at: now)
        printer.redraw(at: now, lines: lines)
    }

    private func lines(at now: Timestamp) -> (Int) -> [String] {
        let groups = model.groups
        let repeated = repeated.groups.lazy.filter(Self.isShown)
            .prefix(GraphProgressView.repeatedMax)
        let line = self.line
        return { width in
            groups.map { line.text(for: $0, at: now, width: width) }
                + repeated.map { line.text(for: $0, at: now, width: width) }
        }
    }

    /// Those that run, and those of which something failed.
    private static func isShown(_ group: ProgressGroup) -> Bool {
        group[.failed] > 0 || group[.pending] < group.total && group.finished < group.total
    }

    /// Whether a repeated operation has begun, or another tenth of it has finished.
    private func hasNewTenth(_ number: Int) -> Bool {
        let group = repeated.groups[number]
        guard group[.executing] > 0 || group.finished > 0 else { return false }
        let tenths = group.finished * 10 / max(1, group.total)
        guard tenthsTold[number].map({ tenths > $0 }) ?? true else { return false }
        tenthsTold[number] = tenths
        return true
    }
}
