import COperonProcess
import Glibc
import Synchronization

/// This process and the arguments and variables it was given.
package enum OwnProcess {
    package static var id: Int32 { getpid() }

    static var parentID: Int32 { getppid() }

    /// The arguments after the program's name.
    package static var arguments: [String] { Array(CommandLine.arguments.dropFirst()) }

    /// The name by which the program was called, without its directory.
    package static var programName: String {
        let path = CommandLine.arguments.first ?? ""
        return path.split(separator: "/").last.map(String.init) ?? "program"
    }

    /// The name of the machine.
    package static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&name, name.count - 1) == 0 else { return "unknown host" }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// The system and the kind of processor, such as `Linux 6.1.0 x86_64`.
    package static var system: String {
        var names = utsname()
        guard unsafe uname(&names) == 0 else { return "unknown" }
        func text<Field>(_ field: Field) -> String {
            unsafe withUnsafeBytes(of: field) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
        }
        return "\(text(names.sysname)) \(text(names.release)) \(text(names.machine))"
    }

    /// The name of a worker in this process, unless it has another.
    package static var workerName: String { "\(hostName)-\(id)" }

    /// Gives way to every other process of the machine: for a program that only shows what others
    /// do. It cannot be taken back. If the system refuses, everything stays as it is. A thread that
    /// is being started by another one at this moment may be missed.
    package static func giveWay() {
        let lowest: Int32 = 19
        let kind = __priority_which_t(PRIO_PROCESS.rawValue)
        // On Linux each thread has a priority of its own, which the threads that it starts inherit.
        // One that has not given way yet may start another one meanwhile.
        for _ in 0..<passesMax {
            let threads = Machine.numbers(of: "", in: "/proc/self/task")
            let others = threads.filter { getpriority(kind, id_t($0)) != lowest }
            if others.isEmpty { return }
            for thread in others { _ = setpriority(kind, id_t(thread), lowest) }
        }
    }

    private static let passesMax = 10

    /// The user whose rights this process has: the name, or the number if the system knows no name.
    /// May block, because the system may ask another machine.
    static var userName: String {
        var entry = unsafe passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16 << 10)
        let user = geteuid()
        let status = unsafe getpwuid_r(user, &entry, &buffer, buffer.count, &found)
        guard status == 0, let found = unsafe found, let name = unsafe found.pointee.pw_name else {
            return String(user)
        }
        return unsafe String(cString: name)
    }

    /// The number of processors that this process may use; at least 1.
    package static var processorCount: Int {
        max(1, Int(operon_process_processors()))
    }

    /// The numbers of these processors, ascending; empty if the kernel does not tell.
    static var processors: [Int] {
        var numbers = [Int32](repeating: 0, count: ProcessLimits.processorsMax)
        let count = unsafe operon_process_processor_numbers(&numbers, Int32(numbers.count))
        return numbers.prefix(max(0, Int(count))).map { Int($0) }
    }

    /// The current environment variables.
    package static var environment: [String: String] {
        var environment: [String: String] = [:]
        guard var next = unsafe operon_process_environment() else { return [:] }
        while let line = unsafe next.pointee {
            let text = unsafe String(cString: line)
            if let equals = text.firstIndex(of: "="), equals > text.startIndex {
                environment[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            unsafe next += 1
        }
        return environment
    }

    /// The variable with the broker's URL, which contains a password: operations must not get it.
    package static let brokerVariable = "OPERON_BROKER"

    /// Raises the soft limit of descriptors to the hard one, but not for child processes.
    package static func raiseDescriptors() { operon_process_raise_descriptors() }

    /// From here on no other process of this user can read the memory and the environment of this
    /// one, and core files omit them. A process that an operation runs stays visible, because the
    /// guard recognises the processes it must end by their environment.
    package static func conceal() {
        guard environment[ProcessEnvironment.inputs] == nil else { return }
        operon_process_conceal()
    }

    /// Limits the freed memory that the allocator keeps: for a process that runs for months, and
    /// whose clients decide how large a request is.
    package static func boundFreeMemory() { operon_process_bound_free_memory() }

    /// From here on SIGINT and SIGTERM have their default effect: they end this process.
    package static func endAtSignals() {
        for number in [SIGINT, SIGTERM] { _ = signal(number, SIG_DFL) }
    }

    /// A write to a pipe that nobody reads fails, instead of ending this process. Programs that it
    /// starts are not affected.
    package static func surviveBrokenPipes() { _ = signal(SIGPIPE, SIG_IGN) }

    /// A line that a thread waits for, or has read.
    private final class InputLine: Sendable {
        let text = Mutex<String?>(nil)
        let isRead = Latch()
    }

    private static let inputLine = Mutex<InputLine?>(nil)

    /// The next line of standard input, without its end; `nil`: there is none, or the task was
    /// cancelled. Only one caller at a time.
    ///
    /// A thread of its own waits for the line, even when nobody does any more. The next call gets
    /// that line, without what was typed of it before: that was meant for somebody else.
    package static func readInputLine() async -> String? {
        let line: InputLine
        do throws(SystemError) {
            line = try nextInputLine()
        } catch {
            return nil
        }
        await line.isRead.wait()
        return line.isRead.isOpen ? line.text.withLock { $0 } : nil
    }

    private static func nextInputLine() throws(SystemError) -> InputLine {
        if let line = inputLine.withLock({ $0 }), !line.isRead.isOpen {
            tcflush(STDIN_FILENO, TCIFLUSH)
            return line
        }
        let line = InputLine()
        try OwnThread.start("operon-input") {
            let text = readLine()
            line.text.withLock { $0 = text }
            line.isRead.open()
        }
        inputLine.withLock { $0 = line }
        return line
    }

    /// Whether somebody can type what this process reads.
    package static var hasTerminalInput: Bool { isatty(STDIN_FILENO) == 1 }

    package static func end(_ code: Int32) -> Never { exit(code) }

    /// Ends this process as a program ends that does not handle SIGPIPE.
    package static func endAsUnread() -> Never {
        _ = signal(SIGPIPE, SIG_DFL)
        var pipe = sigset_t()
        unsafe sigemptyset(&pipe)
        unsafe sigaddset(&pipe, SIGPIPE)
        _ = unsafe pthread_sigmask(SIG_UNBLOCK, &pipe, nil)
        _ = kill(getpid(), SIGPIPE)
        // The signal may be delivered to another thread, a moment later.
        while true { pause() }
    }

    /// From here on this process ends like that as soon as nobody can read its standard output any
    /// more, even if it writes nothing. Only pipes and sockets lose their readers.
    package static func endWhenUnread() {
        var status = stat()
        guard unsafe fstat(STDOUT_FILENO, &status) == 0,
            [S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT)
        else { return }
        // Without a thread, the next write notices it.
        try? OwnThread.start("operon-reader") {
            // Errors are reported even if no event is asked for.
            var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
            while unsafe poll(&output, 1, -1) < 0, errno == EINTR {}
            if output.revents & Int16(POLLERR | POLLHUP) != 0 { endAsUnread() }
        }
    }

    private static let secrets = Mutex<[String: String]>([:])

    /// The value of a variable that others must not see; `nil`: there is none. The first call takes
    /// the variable out of the environment, which every process of this user can read.
    package static func secret(_ name: String) -> String? {
        secrets.withLock { secrets in
            if let taken = unsafe operon_process_take_variable(name) {
                let value = unsafe String(cString: taken)
                unsafe free(taken)
                if !value.isEmpty { secrets[name] = value }
            }
            return secrets[name]
        }
    }

    /// The program that this process runs, even if its file was replaced meanwhile.
    static var executable: String {
        let link = "/proc/self/exe"
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = unsafe readlink(link, &path, path.count)
        guard count > 0, count < path.count else { return link }
        let name = String(decoding: path[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
        // The kernel adds this suffix if the file was replaced. A file that really has such a name
        // is run through the link, too.
        return name.hasSuffix(" (deleted)") ? link : name
    }

    /// From here on each line is written as soon as it is printed.
    static func printLines() { operon_process_print_lines() }

    /// Writes all bytes to the standard output.
    static func print(_ bytes: [UInt8]) { _ = write(bytes, to: STDOUT_FILENO) }

    /// Writes all bytes; returns whether that succeeded.
    static func write(_ bytes: [UInt8], to number: Int32) -> Bool {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(number, buffer.baseAddress! + written, buffer.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return false }
            written += count
        }
        return true
    }

    /// Ends this process by a signal that it has handled until now.
    package static func end(by number: Int32) -> Never {
        fflush(nil)
        signal(number, SIG_DFL)
        var own = sigset_t()
        unsafe sigemptyset(&own)
        unsafe sigaddset(&own, number)
        _ = unsafe pthread_sigmask(SIG_UNBLOCK, &own, nil)
        // To this thread: what is sent to the process may be taken by libdispatch, which reads the
        // signals that it was asked to watch.
        raise(number)
        while true { pause() }
    }

    /// One line of text that may come from elsewhere, without what a terminal would act on.
    package static func line(_ text: String) -> String {
        var line = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x00..<0x20, 0x7F..<0xA0: line.append(" ")
            default: line.append(scalar)
            }
        }
        return String(line)
    }

    /// Ends this process, including everything its threads are doing; only printed output is kept.
    ///
    /// - Parameter message: Why it failed.
    package static func end(failed message: String? = nil) -> Never {
        if let message { _ = write(Array((line(message) + "\n").utf8), to: STDERR_FILENO) }
        fflush(nil)
        _exit(message == nil ? EXIT_SUCCESS : EXIT_FAILURE)
    }
}
