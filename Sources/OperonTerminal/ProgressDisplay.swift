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
    private var isPaused = false
    private var running = RunningOperations()
    /// How many failed operations were named above the progress.
    private var failuresTold = 0
    /// The same of lines about what was skipped, and about what is tried again.
    private var skippedTold = 0
    private var retriesTold = 0
    /// The beginning of the line that somebody completes.
    private var prompt: String?

    /// The most failed operations that are named as they fail. The summary counts the rest.
    private static let failuresToldMax = 20
    /// The most attempts of which a line says that they follow.
    private static let retriesToldMax = 100
    /// The most lines about operations that are skipped together.
    private static let skippedToldMax = 3

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

    /// Counts changes of state. With overprinting it names the operations that run, and prints a
    /// line for what fails, and for what is skipped because of it. Without overprinting it prints a
    /// line for each operation that starts or ends; not for other changes, and not without
    /// `areNews`. An element of a repeated operation has a line if it fails; otherwise there is a
    /// line for each tenth of all elements.
    package func operationsMoved(
        _ moves: [Move],
        in group: Int,
        at now: Timestamp,
        areNews: Bool = true
    ) {
        var lines: [String] = []
        for move in moves {
            model.operationMoved(in: group, from: move.old, to: move.new, work: move.work, at: now)
            if printer.overprints {
                if move.new == .executing { running.started(move.name, at: now) }
                if move.old == .executing { running.ended(move.name) }
            }
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
        guard printer.overprints else { return show(lines) }
        if areNews, !isQuiet { show(news(in: moves)) }
        redraw(at: now)
    }

    /// Lines about what failed, and about what is skipped because of it.
    private func news(in moves: [Move]) -> [String] {
        var lines: [String] = []
        var skipped: [(why: String, names: [String])] = []
        for move in moves {
            switch move.new {
            case .failed where failuresTold < Self.failuresToldMax:
                failuresTold += 1
                lines.append(
                    change.text(
                        operation: move.name,
                        phase: move.new,
                        duration: move.duration,
                        detail: move.detail
                    )
                )
            case .skipped where skippedTold < Self.failuresToldMax:
                if skipped.last?.why == move.detail {
                    skipped[skipped.count - 1].names.append(move.name)
                } else {
                    skipped.append((move.detail, [move.name]))
                }
            default: continue
            }
        }
        if !skipped.isEmpty { skippedTold += min(skipped.count, Self.skippedToldMax) }
        for (why, names) in skipped.prefix(Self.skippedToldMax) {
            let name = names.count == 1 ? names[0] : "\(names.count) operations"
            lines.append(change.text(operation: name, phase: .skipped, duration: nil, detail: why))
        }
        let more = skipped.dropFirst(Self.skippedToldMax).reduce(0) { $0 + $1.names.count }
        if more > 0 {
            let name = more == 1 ? "1 more operation" : "\(more) more operations"
            lines.append(change.text(operation: name, phase: .skipped, duration: nil))
        }
        return lines
    }

    /// Tells that an attempt of an operation failed and another one follows.
    package func retried(_ name: String, _ next: NextAttempt, in group: Int, at now: Timestamp) {
        // What is tried for ever is not told for ever.
        guard !isQuiet, retriesTold < Self.retriesToldMax else { return }
        retriesTold += 1
        let line = change.retry(
            of: name,
            next,
            in: printer.overprints ? nil : model.groups[group]
        )
        print([line], at: now)
    }

    /// Shows counts of a group and of repeated operations, which replace those before them. It says
    /// nothing where overprinting is impossible, because it does not know what has moved.
    ///
    /// - Parameter wall: The date now, by which the view says when operations started.
    package func counted(
        _ view: GraphProgressView,
        in group: Int,
        at now: Timestamp,
        _ wall: WallTime
    ) {
        model.counted(view.graph.counts, in: group, at: now)
        repeated.counted(view.repeated, at: now)
        let running = (view.running ?? []).prefix(GraphProgressView.runningMax).map { operation in
            (name: operation.title, duration: max(.zero, wall - operation.startedAt.time))
        }
        self.running.counted(Array(running), at: now)
        redraw(at: now)
    }

    /// Prints lines about what went wrong, above counts that come from elsewhere.
    package func tell(_ moves: [Move], at now: Timestamp) {
        guard !isQuiet else { return }
        show(news(in: moves))
        redraw(at: now)
    }

    /// Prints lines above the progress. Untrusted text must go through `TerminalText` first.
    package func print(_ lines: [String], at now: Timestamp) {
        show(lines)
        redraw(at: now)
    }

    private func show(_ lines: [String]) {
        if let prompt { printer.print(lines, above: prompt) } else { printer.print(lines) }
    }

    /// Redraws if a redraw is due.
    package func tick(at now: Timestamp) { redraw(at: now) }

    /// Draws the final state and leaves it on the screen. Nothing is drawn after it, even if `tick`
    /// is called again.
    package func finish(at now: Timestamp) {
        if isPaused { resume(isAnswered: false, at: now) }
        guard !isQuiet, !isFinished else { return }
        isFinished = true
        let lines = self.lines(at: now)
        printer.finish(lines: lines)
    }

    /// Removes the progress from the screen, until `resume`: somebody types.
    package func pause() {
        isPaused = true
        printer.clear()
    }

    /// Prints the beginning of a line that somebody completes; only between `pause` and `resume`.
    /// What is printed meanwhile comes above it.
    package func ask(_ prompt: String) {
        self.prompt = prompt
        printer.prompt(prompt)
    }

    /// Nobody completes the line any more: what comes has a line of its own all the same.
    package func withdrawPrompt() {
        if prompt != nil { printer.endLine() }
        prompt = nil
    }

    /// - Parameter isAnswered: Whether somebody has ended the line of the prompt.
    package func resume(isAnswered: Bool, at now: Timestamp) {
        if isAnswered {
            printer.erasePrompt()
            prompt = nil
        } else {
            withdrawPrompt()
        }
        isPaused = false
        redraw(at: now)
    }

    private func redraw(at now: Timestamp) {
        guard !isQuiet, !isFinished, !isPaused else { return }
        let lines = self.lines(at: now)
        printer.redraw(at: now, lines: lines)
    }

    private func lines(at now: Timestamp) -> (Int) -> [String] {
        let groups = model.groups
        let repeated = repeated.groups.lazy.filter(Self.isShown)
            .prefix(GraphProgressView.repeatedMax)
        let line = self.line
        let (running, style) = (isFinished ? RunningOperations() : running, printer.style)
        return { width in
            groups.map { line.text(for: $0, at: now, width: width) }
                + repeated.map { line.text(for: $0, at: now, width: width) }
                + running.lines(style, at: now, width: width)
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
