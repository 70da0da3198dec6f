import ArgumentParser
import FoundationEssentials
import OperonArguments
import OperonGraphFile
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTerminal

struct Map: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "map",
        abstract: "Run a command for each of many values, as GNU parallel does.",
        usage: """
            operon map [<options>] <command> <value> ...
            operon map [<options>] <command> ... ::: <value> ... [::: <value> ...] ...
            operon map [<options>] <command> < <values>
            """,
        discussion: """
            Options come before the command. Without values, they are the lines of standard \
            input. Without a command, the values are the commands.

            {}        the value                  {#}    the number of the row, from 1
            {.}       without its suffix         {/}    the name of the file
            {//}      its directory              {/.}   the name without its suffix
            {1} {2.}  of the first, second source of values; {-1} of the last

            ::: VALUE ...   a further source; every value is combined with those of the others
            :::: FILE ...   a source for each file, with a value in each line
            :::+ VALUE ...  taken side by side with the source before it; so is ::::+ FILE ...

            The output of each operation is printed when it has ended, as if it had run alone.

            The commands run in this process, unless --broker, --broker-file or --coordinator is \
            given. The variables OPERON_BROKER and OPERON_COORDINATOR do not change that.

            Exit codes: 0 all succeeded; 1 to 100 so many operations failed; 101 more than 100 \
            failed; 255 another error; 130, 143 ended by SIGINT, SIGTERM.
            """
    )

    @Option(
        name: [.customShort("j", allowingJoined: true), .long],
        help: "How many operations run at once in this process. Default: one per processor."
    )
    var slots: Int?

    @Flag(name: [.customShort("k"), .long], help: "Print the outputs in the order of the values.")
    var keepOrder = false

    @Flag(
        name: [.customShort("0"), .customLong("null")],
        help: "Values of files and of standard input end with NUL instead of a newline."
    )
    var isNull = false

    @Option(
        name: [.customShort("a"), .long],
        help: ArgumentHelp(
            "A file with a value in each line, as :::: FILE; may be repeated.",
            valueName: "file"
        ),
        completion: .file()
    )
    var argFile: [String] = []

    @Option(
        help: ArgumentHelp(
            "How many further attempts an operation has after failures.",
            valueName: "number"
        )
    )
    var retry: UInt16 = 0

    @Option(help: "The longest time that an attempt may run, \(DurationArgument.example).")
    var timeout: DurationArgument?

    @Flag(help: "After a failure, cancel everything else.")
    var failFast = false

    @OptionGroup var broker: BrokerArguments
    @OptionGroup var trust: CoordinatorTrustArguments

    @OptionGroup var coordinator: AddressArguments

    @Option(
        help: ArgumentHelp(
            "Write a line for each operation to this file, with the columns of GNU parallel.",
            valueName: "file"
        ),
        completion: .file()
    )
    var joblog: String?

    @Flag(help: "Leave out what is in the --joblog of an earlier run, and continue the file.")
    var resume = false

    @Flag(help: "As --resume, but run again what failed.")
    var resumeFailed = false

    @Flag(help: "Print the commands, and run nothing.")
    var dryRun = false

    @Argument(
        parsing: .captureForPassthrough,
        help: ArgumentHelp("The command and the values.", valueName: "command")
    )
    var words: [String] = []

    func validate() throws {
        if let slots, !(1...Limits().slots).contains(slots) {
            throw ValidationError("--slots must be from 1 to \(Limits().slots)")
        }
        if coordinator.coordinator != nil, broker.isNamed {
            throw ValidationError("--coordinator and a broker cannot be combined")
        }
        if resume || resumeFailed, joblog == nil {
            throw ValidationError("--resume and --resume-failed need --joblog")
        }
        // What begins with a dash here came before the command, but is none of the options above.
        if let first = words.first, first.hasPrefix("-"), first != "--" {
            if ["--help", "-h"].contains(first) { throw CleanExit.helpRequest(Self.self) }
            throw ValidationError(
                "unknown option “\(TerminalText.line(first))”\(Self.hint(for: first))"
            )
        }
    }

    /// The option that is meant by one that is not there.
    private static func hint(for option: String) -> String {
        let names = helpMessage().split { !$0.isLetter && $0 != "-" }
            .filter { $0.hasPrefix("--") }.map { String($0.dropFirst(2)) }
        let word = String(option.drop { $0 == "-" }.prefix { $0 != "=" })
        let meant = Suggestion.nearest(to: word, among: names)
        return meant.map { ". Did you mean “--\($0)”?" } ?? ""
    }

    func run() async throws {
        do {
            throw ExitCode(try await runAll())
        } catch let failure as Failure {
            throw Failure(MapExit.other, failure.message)
        } catch let error as MapError {
            throw Failure(MapExit.other, error.message)
        } catch let error as PortError {
            throw Failure(MapExit.other, error.message)
        } catch let error as StateDirectoryError {
            throw Failure(MapExit.other, error.message)
        }
    }

    private func runAll() async throws -> Int32 {
        let environment = Environment.current
        if FileOutput(descriptor: 0).isTerminal, argFile.isEmpty, words.count <= 1 {
            let end = "the values are read from the terminal; Ctrl-D on a line of its own ends them"
            FileOutput.standardError.print("operon: \(end)")
        }
        let values = try MapValues(words: try readWords(), files: argFile, isNull: isNull)
        let done = try resume || resumeFailed ? joblog.flatMap { try JobLog.read($0) } : nil
        if dryRun {
            let plan = try plan(values, .log(marker: ""), done, environment)
            for index in plan.numbers.indices { printLine(plan.command(index)) }
            return ExitStatus.success
        }
        // Otherwise the files of the outputs would be left.
        OwnProcess.surviveBrokenPipes()
        let files = try MapFiles(environment: environment)
        defer { files.remove() }
        let delivery = isRemote ? MapDelivery.throughLog() : .files(files)
        let plan = try plan(values, delivery, done, environment)
        let log = try joblog.map { try JobLog(path: $0, after: done) }
        guard !plan.numbers.isEmpty else { return ExitStatus.success }
        let output = try MapOutput(
            plan,
            files: files,
            delivery: delivery,
            keepsOrder: keepOrder,
            log: log
        )
        defer { output.close() }
        let code = try await run(plan, output, environment)
        if let failure = output.logFailure {
            throw Failure(MapExit.other, "\(joblog ?? ""): the joblog is not complete: \(failure)")
        }
        return code
    }

    /// Whether operations run on workers. Unlike for other commands, variables of the environment
    /// do not decide it, because the output of a command on a worker has a limit.
    private var isRemote: Bool { broker.isNamed || coordinator.coordinator != nil }

    private func run(
        _ plan: MapPlan,
        _ output: MapOutput,
        _ environment: [String: String]
    ) async throws -> Int32 {
        if coordinator.coordinator != nil {
            var code = ExitStatus.success
            try await ClientSession.run(coordinator, .text) { session in
                code = try await MapSubmission(plan, output, failFast: failFast, session)
                    .run()
            }
            return code
        }
        let session = try RunSession(
            graph: try plan.load(failFast: failFast),
            options: RunSession.Options(
                slots: slots ?? Environment.processorCount,
                brokerURL: broker.isNamed ? try broker.url(environment: environment) : nil,
                prefix: broker.prefix,
                trust: trust,
                connectTimeout: .seconds(30),
                operationsPerMessage: CoordinatorService.defaultOperationsPerMessage,
                output: .quiet
            ),
            environment: environment,
            listener: output
        )
        return try await session.run()
    }

    private func plan(
        _ values: MapValues,
        _ delivery: MapDelivery,
        _ done: JobLog.Done?,
        _ environment: [String: String]
    ) throws -> MapPlan {
        try MapPlan(
            values,
            settings(delivery, environment),
            isDone: { number, command throws(Failure) in try isDone(number, command, done) }
        )
    }

    private func settings(
        _ delivery: MapDelivery,
        _ environment: [String: String]
    ) -> MapPlan.Settings {
        var settings = MapPlan.Settings(
            delivery: delivery,
            inheritEnvironment: isRemote
                ? CommandDescription.defaultInheritEnvironment : Self.inherited(environment),
            directory: FileManager.default.currentDirectoryPath
        )
        settings.timeout = timeout?.duration
        settings.retry = RetryPolicy(limit: retry)
        return settings
    }

    /// In this process, commands have the whole environment, as those of a shell.
    private static func inherited(_ environment: [String: String]) -> [String] {
        environment.keys.filter { name in
            !name.hasPrefix("OPERON_") && (1...Limits().nameBytes).contains(name.utf8.count)
                && name.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        }.sorted()
    }

    // MARK: - Words

    /// The command and the values, without the sign that ends the options.
    private func readWords() throws(MapError) -> [String] {
        // The system's words are bytes; those that are no text have become this character.
        guard !words.contains(where: { $0.unicodeScalars.contains("\u{FFFD}") }) else {
            throw MapError("A word of the command line is not UTF-8 text.")
        }
        return words.first == "--" ? Array(words.dropFirst()) : words
    }

    // MARK: - Resuming

    private func isDone(
        _ number: Int,
        _ command: String,
        _ done: JobLog.Done?
    ) throws(Failure) -> Bool {
        guard let earlier = done?.commands[number] else { return false }
        guard earlier.text == command else {
            throw Failure(
                MapExit.other,
                "\(joblog ?? "") is the log of other commands: number \(number) was"
                    + " \(TerminalText.line(earlier.text)), and is now"
                    + " \(TerminalText.line(command))"
            )
        }
        return resume && !resumeFailed || earlier.hasSucceeded
    }
}
