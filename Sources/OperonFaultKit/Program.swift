import COperonProcess
import Foundation
import Glibc

/// One of our programs, built beside these tests, running in a process group of its own.
///
/// Its streams are read by threads as they come, so that nothing it prints can stop it. Whoever
/// starts one waits for its end or kills it: `Workspace` does so for all of its programs.
package final class Program: Sendable {
    /// Where its streams go.
    package enum Streams: Equatable {
        case pipes
        /// One terminal for all of them: what it shows is in `output`.
        case terminal(columns: UInt16, rows: UInt16)
        /// Standard error is a full pipe that nobody reads.
        case unreadErrors
        /// Standard output goes to a full disk.
        case fullOutput
        /// Standard output is a pipe whose reader has gone away.
        case closedOutput
    }

    /// How a process ended.
    package enum End: Hashable, CustomStringConvertible {
        case exit(Int32)
        case signal(Int32)

        package var description: String {
            switch self {
            case .exit(let code): "exit \(code)"
            case .signal(let number): "signal \(number)"
            }
        }
    }

    package let name: String
    package let process: Int32
    package let output = Transcript()
    package let errors = Transcript()
    private let ending = Latch<End>()
    /// The end of a pipe that nobody reads.
    private let unread: Int32?
    /// Where somebody types; only with a terminal.
    private let keyboard: Int32?

    deinit {
        if let unread { close(unread) }
        if let keyboard { close(keyboard) }
    }

    package init(
        _ name: String,
        _ arguments: [String],
        environment: [String: String],
        directory: String,
        streams: Streams = .pipes
    ) throws {
        self.name = name
        let path = try Self.executable(name)
        let ends: (standard: [Int32], readers: [(Int32, Transcript)])
        switch streams {
        case .fullOutput, .closedOutput:
            let (errorReader, errorWriter) = try Self.pipe()
            unread = nil
            let input = open("/dev/null", O_RDONLY | O_CLOEXEC)
            let lost = try streams == .fullOutput ? Self.fullDisk() : Self.closedPipe()
            ends = ([input, lost, errorWriter], [(errorReader, errors)])
            output.end()
            keyboard = nil
        case .unreadErrors:
            let (outputReader, outputWriter) = try Self.pipe()
            let (errorReader, errorWriter) = try Self.pipe()
            Self.fill(errorWriter)
            unread = errorReader
            let input = open("/dev/null", O_RDONLY | O_CLOEXEC)
            ends = ([input, outputWriter, errorWriter], [(outputReader, output)])
            errors.end()
            keyboard = nil
        case .pipes:
            unread = nil
            keyboard = nil
            let (outputReader, outputWriter) = try Self.pipe()
            let (errorReader, errorWriter) = try Self.pipe()
            let input = open("/dev/null", O_RDONLY | O_CLOEXEC)
            ends = (
                [input, outputWriter, errorWriter], [(outputReader, output), (errorReader, errors)]
            )
        case .terminal(let columns, let rows):
            unread = nil
            let (screen, side) = try Self.terminal(columns: columns, rows: rows)
            keyboard = fcntl(screen, F_DUPFD_CLOEXEC, 0)
            ends = ([side, side, side], [(screen, output)])
            errors.end()
        }
        let start = Start(path, [name] + arguments, environment, directory, ends.standard)
        let ending = ending
        // The program dies with the thread that started it, so with the test runner at the latest.
        Thread.detachNewThread {
            if let process = start.spawn() { ending.open(Self.waitFor(process)) }
        }
        let result = start.result
        for end in Set(ends.standard) { close(end) }
        for (reader, transcript) in ends.readers {
            Thread.detachNewThread { transcript.readAll(reader) }
        }
        process = try result.get()
    }

    /// Nothing, if it has ended already.
    package func signal(_ number: Int32) {
        guard ending.value == nil else { return }
        kill(process, number)
    }

    /// Returns when it stands still, each of its threads: a signal takes its time to get there.
    package func freeze() async throws {
        signal(SIGSTOP)
        let deadline = ContinuousClock.now + .seconds(60)
        while !ProcessFacts.isStopped(process) {
            guard !hasEnded, ContinuousClock.now < deadline else {
                throw CommandFailure("\(name) cannot be stopped; it said:\n\(said)")
            }
            // A process that stops tells nobody but its parent's thread, which waits for its end.
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    /// Types on its terminal.
    package func type(_ text: String) throws {
        let bytes = Array(text.utf8)
        let count = keyboard.map { keyboard in
            bytes.withUnsafeBytes { write(keyboard, $0.baseAddress, $0.count) }
        }
        guard count == bytes.count else { throw CommandFailure("nobody can type to \(name)") }
    }

    package var hasEnded: Bool { ending.value != nil }

    /// Returns when it has ended and both streams are read to their end.
    ///
    /// - Throws: `CommandFailure` with what it said, after `limit`; it is killed then.
    @discardableResult
    package func end(within limit: Duration = .seconds(180)) async throws -> Ended {
        let deadline = ContinuousClock.now + limit
        guard let end = await ending.wait(until: deadline) else {
            kill(-process, SIGKILL)
            throw CommandFailure("\(name) did not end within \(limit); it said:\n\(said)")
        }
        let isRead = await output.waitForEnd(until: deadline)
        guard isRead, await errors.waitForEnd(until: deadline) else {
            throw CommandFailure("\(name) ended, but somebody keeps its streams:\n\(said)")
        }
        return Ended(end: end, output: output.text, errors: errors.text)
    }

    /// Returns when it has said this, so often, on one of its streams.
    package func says(
        _ text: String,
        times: Int = 1,
        within limit: Duration = .seconds(120)
    ) async throws {
        let deadline = ContinuousClock.now + limit
        let found = await withTaskGroup(of: Bool.self) { group in
            for transcript in [output, errors] {
                group.addTask {
                    await transcript.wait(for: text, times: times, until: deadline)
                }
            }
            for await found in group where found {
                group.cancelAll()
                return true
            }
            return false
        }
        guard found else {
            throw CommandFailure("\(name) did not say “\(text)” within \(limit), but:\n\(said)")
        }
    }

    private var said: String { output.text.suffix(4_000) + "\n" + errors.text.suffix(8_000) }

    // MARK: - Starting

    /// The folder of the test bundle has the programs as well. A path stands for itself.
    package static func executable(_ name: String) throws -> String {
        if name.hasPrefix("/") { return name }
        // Measurements want the programs as users have them: built for release.
        if let folder = ProcessInfo.processInfo.environment["OPERON_TEST_PROGRAMS"] {
            let path = "\(folder)/\(name)"
            if FileManager.default.isExecutableFile(atPath: path) { return path }
        }
        let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        let places = [own] + Bundle.allBundles.map(\.bundleURL) + [Bundle.main.bundleURL]
        for place in places {
            for folder in [place, place.deletingLastPathComponent()] {
                let path = folder.appendingPathComponent(name).path
                var isFolder: ObjCBool = false
                if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder),
                    !isFolder.boolValue, FileManager.default.isExecutableFile(atPath: path)
                {
                    return path
                }
            }
        }
        throw CommandFailure("no \(name) beside \(own.path): swift build --build-tests makes it")
    }

    private static func fill(_ pipe: Int32) {
        let flags = fcntl(pipe, F_GETFL)
        _ = fcntl(pipe, F_SETFL, flags | O_NONBLOCK)
        let bytes = [UInt8](repeating: UInt8(ascii: "x"), count: 4_096)
        while bytes.withUnsafeBytes({ Glibc.write(pipe, $0.baseAddress, $0.count) }) > 0 {}
        _ = fcntl(pipe, F_SETFL, flags)
    }

    private static func fullDisk() throws -> Int32 {
        let file = open("/dev/full", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { throw CommandFailure("no full disk: error \(errno)") }
        return file
    }

    private static func closedPipe() throws -> Int32 {
        let (reader, writer) = try pipe()
        close(reader)
        return writer
    }

    private static func pipe() throws -> (reader: Int32, writer: Int32) {
        var reader: Int32 = -1
        var writer: Int32 = -1
        guard operon_process_pipe(&reader, &writer) == 0 else {
            throw CommandFailure("no pipe: error \(errno)")
        }
        return (reader, writer)
    }

    private static func terminal(
        columns: UInt16,
        rows: UInt16
    ) throws -> (screen: Int32, side: Int32) {
        var screen: Int32 = -1
        var side: Int32 = -1
        var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        guard openpty(&screen, &side, nil, nil, &size) == 0 else {
            throw CommandFailure("no pseudo-terminal: error \(errno)")
        }
        return (screen, side)
    }

    private static func waitFor(_ process: Int32) -> End {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        let number = status & 0x7F
        return number == 0 ? .exit(status >> 8 & 0xFF) : .signal(number)
    }
}

/// Starts a process on one thread and tells another.
private final class Start: @unchecked Sendable {
    private let path: String
    private let arguments: [String]
    private let environment: [String: String]
    private let directory: String
    private let standard: [Int32]
    // Protects `started`.
    private let condition = NSCondition()
    private var started: Result<Int32, CommandFailure>?

    package init(
        _ path: String,
        _ arguments: [String],
        _ environment: [String: String],
        _ directory: String,
        _ standard: [Int32]
    ) {
        self.path = path
        self.arguments = arguments
        self.environment = environment
        self.directory = directory
        self.standard = standard
    }

    /// Blocks until it has been started, or could not be.
    package var result: Result<Int32, CommandFailure> {
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let started { return started }
            condition.wait()
        }
    }

    package func spawn() -> Int32? {
        var spawned = spawnOnce()
        // A program that was just copied: somebody who was started meanwhile has not executed its
        // own yet, and still has the copy open for writing. There is nothing to await.
        for _ in 0..<Self.busyTries
        where spawned.step == OPERON_PROCESS_EXECUTE && spawned.error == ETXTBSY {
            usleep(10_000)
            spawned = spawnOnce()
        }
        if spawned.descriptor >= 0 { close(spawned.descriptor) }
        let isStarted = spawned.step == OPERON_PROCESS_STARTED
        condition.lock()
        started =
            isStarted
            ? .success(spawned.process)
            : .failure(CommandFailure("\(path) does not start: error \(spawned.error)"))
        condition.signal()
        condition.unlock()
        return isStarted ? spawned.process : nil
    }

    private static let busyTries = 500

    private func spawnOnce() -> operon_process_spawned {
        let candidates = [strdup(path), nil]
        let argv = arguments.map { strdup($0) } + [nil]
        let envp = environment.map { strdup("\($0)=\($1)") } + [nil]
        let folder = strdup(directory)
        defer { for text in candidates + argv + envp + [folder] { free(text) } }
        return candidates.map { UnsafePointer($0) }.withUnsafeBufferPointer { candidates in
            argv.withUnsafeBufferPointer { argv in
                envp.withUnsafeBufferPointer { envp in
                    var request = operon_process_request()
                    request.candidates = candidates.baseAddress
                    request.arguments = argv.baseAddress
                    request.environment = envp.baseAddress
                    request.directory = UnsafePointer(folder)
                    request.input = standard[0]
                    request.output = standard[1]
                    request.error = standard[2]
                    return operon_process_spawn(&request)
                }
            }
        }
    }
}

/// What is left of a program that has ended.
package struct Ended {
    package let end: Program.End
    package let output: String
    package let errors: String

    package var outputLines: [Substring] { output.split(separator: "\n") }
    package var errorLines: [Substring] { errors.split(separator: "\n") }
}

/// Why a test of the programs cannot go on.
package struct CommandFailure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
