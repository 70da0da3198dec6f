import ArgumentParser
import OperonArguments
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTerminal

struct Logs: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logs",
        abstract: "Print what an operation, or every operation of a graph, has printed.",
        usage: "operon logs <graph>[/<operation>] [<options>]",
        discussion: """
            Prints the attempts of an operation in order, and of an attempt that runs what it has \
            printed so far. Of a graph, or of all elements of a repeated operation (its name, or \
            NAME[*]), each line begins with the name of its operation. Of an attempt that prints \
            more than 1 MiB, the first 128 KiB and the last 896 KiB are kept; a line says how much \
            is missing between them. On a terminal, escape sequences are removed and other control \
            characters escaped; a pipe gets the bytes of an operation unchanged.
            """
    )

    @Argument(help: ArgumentHelp(Selectors.targetHelp))
    var target: String

    @Flag(
        name: .shortAndLong,
        help: """
            Continue until the operation has finished; for a graph, or a repeated operation, until \
            the graph has.
            """
    )
    var follow = false

    @Option(
        help: ArgumentHelp(
            "Only the last lines of what each operation has printed so far.",
            valueName: "lines"
        )
    )
    var tail: Int?

    @Option(
        help: ArgumentHelp(
            "Only attempts that ran at this time or later: a date such as "
                + "2026-11-24T18:00:00+01:00, or how long ago, such as 10m.",
            valueName: "time"
        )
    )
    var since: PastMomentArgument?

    @Option(help: ArgumentHelp("Only this attempt; the first is 1.", valueName: "number"))
    var attempt: UInt32?

    @OptionGroup var coordinator: ClientArguments

    private var selector: LogSelector {
        get throws {
            guard target.contains("/") else { return .graph(try Selectors.graph(target)) }
            return .operation(try Selectors.operation(target))
        }
    }

    func validate() throws {
        _ = try selector
        if let tail, tail < 0 { throw ValidationError("--tail is a number of lines, at least 0") }
        if attempt == 0 { throw ValidationError("the first attempt is number 1") }
    }

    func run() async throws {
        let selector = try selector
        let query = LogQuery(follow: follow, tail: tail, since: since?.time, attempt: attempt)
        try await ClientSession.run(coordinator, about: selector.asked) { session in
            guard follow else { return try await Self.print(selector, query, session) }
            OwnProcess.endWhenUnread()
            let code = try await Detaching.run(
                session.console,
                saying: {
                    let shown = CommandText.quoted(TerminalText.line(target))
                    return ["To continue: operon logs --follow \(shown)"]
                }
            ) {
                try await Self.print(selector, query, session)
                return ExitStatus.success
            }
            throw ExitCode(code)
        }
    }

    private static func print(
        _ selector: LogSelector,
        _ query: LogQuery,
        _ session: ClientSession
    ) async throws {
        var (selector, query) = (selector, query)
        var asked: OperationDetail?
        if case .operation(let operation) = selector {
            let detail = try await session.client.operation(operation.withoutEach)
            if try await isRepeated(detail.operation, operation, session) {
                selector = .graph(operation.graph)
                query.repeated = detail.operation.name
            } else {
                asked = detail
            }
        }
        var printer = LogPrinter(session.console, of: selector, isWhole: !query.follow)
        if let detail = asked {
            // Only its attempts say whether a heading is needed above the first one.
            try check(query, detail)
            printer.hasSeveralAttempts = detail.attempts.count > 1
            printer.lost = detail.attempts.filter { $0.ending == "lost" && query.wants($0) }
        }
        for try await log in try await session.client.log(of: selector, query) {
            try printer.print(log)
        }
        printer.end()
        if case .graph(let graph) = selector, session.console.format == .text, !query.follow,
            query.tail == nil, query.since == nil
        {
            do {
                try await tellLost(of: graph, query, session, besides: printer.printed)
            } catch let error as ClientError where error.code == .notFound {
                // An earlier coordinator does not know the question, or the graph was just dropped.
            }
        }
        guard printer.hasPrintedNothing, session.console.format == .text, !query.follow,
            query.tail == nil, query.since == nil
        else { return }
        try await explainNothing(selector, query, session)
    }

    /// Whether an operation stands for its elements, which is what printed something.
    private static func isRepeated(
        _ operation: OperationView,
        _ asked: OperationSelector,
        _ session: ClientSession
    ) async throws -> Bool {
        if operation.kind == Work.nothingKind {
            var query = OperationQuery()
            query.namePrefix = operation.name + "["
            query.limit = 1
            let found = try await session.client.operations(of: asked.graph, query).operations
            if !found.isEmpty { return true }
            // Its elements are not there yet.
            query.namePrefix = operation.name + RepeatedNames.addingSuffix
            let adding = try await session.client.operations(of: asked.graph, query).operations
            if adding.contains(where: { $0.kind == Work.forEachKind }) { return true }
        }
        // An operation that is not repeated has no elements: the coordinator refuses the name.
        if asked.withoutEach != asked { _ = try await session.client.operation(asked) }
        return false
    }

    /// So many attempts whose logs are gone with their workers are named of a graph.
    private static let lostMax = 20
    /// Operations of one answer, as many as the coordinator gives at once.
    private static let pageOperations = 10_000

    /// Says which attempts of a graph left no log, because their workers were lost.
    private static func tellLost(
        of graph: String,
        _ query: LogQuery,
        _ session: ClientSession,
        besides printed: Set<LogPrinter.Printed>
    ) async throws {
        let speech = session.console.speech
        var lines: [String] = []
        var count = 0
        var first: UInt32 = 0
        while true {
            let page = try await session.client.records(
                of: graph,
                after: first,
                limit: pageOperations
            )
            for (place, record) in page.records.enumerated() {
                // The numbers come from outside.
                let index = first &+ UInt32(truncatingIfNeeded: place)
                if let repeated = query.repeated,
                    !RepeatedNames.isPart(record.name, of: repeated)
                {
                    continue
                }
                for attempt in record.attempts ?? [] where attempt.ending == "lost" {
                    guard query.attempt.map({ $0 == attempt.number }) ?? true,
                        !printed.contains(.init(operation: index, attempt: attempt.number))
                    else { continue }
                    count += 1
                    guard count <= lostMax else { continue }
                    let worker = attempt.worker.flatMap { number in
                        page.workers.indices.contains(number) ? page.workers[number] : nil
                    }
                    lines.append(speech.lostLog(attempt.number, of: record.name, by: worker))
                }
            }
            guard let next = page.next, next > first else { break }
            first = next
        }
        if count > lostMax { lines.append(speech.moreLost(count - lostMax)) }
        session.console.say(lines)
    }

    private static func check(_ query: LogQuery, _ detail: OperationDetail) throws(Failure) {
        let count = detail.attempts.last?.number ?? 0
        guard let attempt = query.attempt, attempt > count, !query.follow else { return }
        let had = detail.operation.state == .finished ? "had" : "has had"
        let attempts = count == 1 ? "1 attempt" : "\(count) attempts"
        let name = TerminalText.line(detail.operation.name)
        throw Failure(ExitStatus.noSuchObject, "“\(name)” \(had) \(attempts).")
    }

    /// Why there is nothing: an empty log of something that failed is a question.
    private static func explainNothing(
        _ selector: LogSelector,
        _ query: LogQuery,
        _ session: ClientSession
    ) async throws {
        let number = query.attempt
        let speech = session.console.speech
        switch selector {
        case .operation(let name):
            let detail = try await session.client.operation(name)
            guard let number else {
                return session.console.say(speech.printedNothing(detail.operation))
            }
            let attempt = detail.attempts.first { $0.number == number }
            guard let attempt else { return }
            session.console.say([speech.printedNothing(attempt, of: detail.operation)])
        case .graph(let name):
            guard number == nil else { return }
            let graph = "graph \(TerminalText.line(name))"
            let element = query.repeated.map { "No element of “\(TerminalText.line($0))” in " }
            session.console.say(["\(element ?? "Nothing of ")\(graph) printed anything."])
        }
    }
}

extension LogQuery {
    fileprivate func wants(_ other: AttemptView) -> Bool {
        if let since, let end = other.endedAt?.time, end < since { return false }
        return attempt.map { $0 == other.number } ?? true
    }
}

extension OperationSelector {
    /// The operation that stands for the elements, if all of them are meant.
    fileprivate var withoutEach: OperationSelector {
        let group = RepeatedNames.group(ofEach: operation)
        return group.map { OperationSelector(graph: graph, operation: $0) } ?? self
    }
}

extension LogSelector {
    fileprivate var asked: ClientSession.Subject {
        switch self {
        case .operation(let operation): .operation(operation)
        case .graph(let graph): .graph(graph)
        }
    }
}

/// Prints logs as they come: what operations printed to standard output, and sentences about it to
/// standard error.
private struct LogPrinter {
    private let console: Console
    private let isGraph: Bool
    /// Whether all of an operation comes before the next one.
    private let isWhole: Bool
    private var text: LogText
    private var last: OperationName?
    private(set) var hasPrintedNothing = true
    /// The attempt whose heading is printed.
    private var attempt: UInt32 = 1
    var hasSeveralAttempts = false
    /// Attempts that are gone with their workers, and that were not told yet.
    var lost: [AttemptView] = []
    /// An attempt of a graph whose log has come.
    struct Printed: Hashable {
        let operation: UInt32
        let attempt: UInt32
    }
    private(set) var printed: Set<Printed> = []

    init(_ console: Console, of selector: LogSelector, isWhole: Bool) {
        self.console = console
        self.isWhole = isWhole
        if case .graph = selector { isGraph = true } else { isGraph = false }
        text = LogText(
            style: console.data.style,
            isTerminal: console.output.isTerminal,
            isPrefixed: isGraph
        )
    }

    mutating func print(_ log: LogView) throws {
        lost.removeAll { $0.number == log.number }
        tellLost(before: log.number)
        hasPrintedNothing = false
        if isGraph, isWhole {
            printed.insert(Printed(operation: log.operation.index, attempt: log.number))
        }
        switch console.format {
        case .json: try console.writeJSON(log)
        case .quiet: break
        case .text:
            if !isGraph {
                var notes: [String] = []
                if log.number != attempt || hasSeveralAttempts {
                    notes.append(console.speech.attemptHead(log))
                    attempt = log.number
                    hasSeveralAttempts = false
                }
                if log.missedBytes > 0 { notes.append(console.speech.missedLog(log.missedBytes)) }
                if !notes.isEmpty, console.output.isTerminal { console.write(text.end()) }
                if !notes.isEmpty { console.say(notes) }
            }
            if isWhole, isGraph, let last, last != log.operation {
                console.write(text.end(of: last))
            }
            last = log.operation
            console.write(text.text(of: log))
        }
    }

    mutating func end() {
        if console.format == .text { console.write(text.end()) }
        tellLost(before: .max)
    }

    private mutating func tellLost(before number: UInt32) {
        let told = lost.prefix { $0.number < number }
        guard console.format == .text, !told.isEmpty else { return }
        lost.removeFirst(told.count)
        hasPrintedNothing = false
        if console.output.isTerminal { console.write(text.end()) }
        console.say(told.map(console.speech.lostLog))
        // The next attempt has a heading.
        hasSeveralAttempts = true
    }
}
