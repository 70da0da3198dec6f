import COperonProcess
import Glibc
import OperonModel
import Synchronization

/// Receives a piece of a process's output: its stream, the number of bytes of that stream before
/// it, and at most 64 KiB. Called on the thread that serves all processes: it must return at once,
/// and drop what it has no room for.
package typealias ProcessOutputHandler = @Sendable (PrintedPiece) -> Void

/// A process to start, with everything needed to watch it.
struct SpawnRequest: Sendable {
    let id: UInt64
    let arguments: [String]
    /// `NAME=value` lines, already checked.
    let environment: [String]
    /// The value of `PATH` in that environment.
    let path: String
    let directory: String?
    let niceness: Int32
    let timeout: Duration?
    let grace: Duration
    let limits: ProcessLimits
    /// The control group that it runs in; `nil`: that of the worker.
    let group: Group?
    let logBytes: Int
    /// What must not appear in what it prints; `nil`: it has no secrets.
    var mask: SecretMask?
    /// Whether the system must write no core file of it.
    var dumpsNoCore = false
    /// The user that it becomes; `nil`: it stays that of the worker.
    var user: OperationUser?
    /// Whether it can get no more rights by executing a program.
    var hasNoNewPrivileges = false
    /// Checked for an output when the process has ended.
    let outputPath: String
    let stopSignal: StopSignal
    let onLog: ProcessOutputHandler?
    /// Where the process's group is noted while it runs.
    let state: StateDirectory?
    /// Called once, on a thread of the runner.
    let completion: @Sendable (Outcome) -> Void

    /// A control group to make, named by the number of the request.
    struct Group: Sendable {
        let groups: ControlGroups
        let limits: ControlGroupLimits

        func make(of id: UInt64) throws(SystemError) -> Descriptor {
            try groups.make(limits, of: id)
        }
    }

    /// The result of a start request.
    enum Outcome: Sendable {
        case ended(RunningProcess.End)
        case failed(SpawnFailure)
        /// It was asked to stop before it had started.
        case stopped
        /// Its timeout passed before it had started. The text says what delayed it.
        case timedOut(String)
        /// The system had no descriptor, process or memory for it.
        case short(SystemError)
    }
}

/// Why a process could not be started, as a sentence for the person who wrote the command.
struct SpawnFailure: Error, Hashable {
    let message: String

    /// The error of its attempt.
    var operationError: OperationError {
        .thrown(type: "spawn", message: message, payload: [])
    }
}

/// How far a start has come, for the threads that watch it. The child notes it: it shares this
/// process's memory until it executes its program. `@unchecked Sendable`: the child and the kernel
/// write it; others only read it, in C.
@safe final class StartProgress: @unchecked Sendable {
    fileprivate let noted: UnsafeMutablePointer<operon_process_progress>
    private let isOver = Mutex(false)

    init() {
        unsafe noted = .allocate(capacity: 1)
        unsafe noted.initialize(to: operon_process_progress(descriptor: -1, step: 0))
    }

    /// The step that the child has reached.
    var step: operon_process_step { unsafe operon_process_reached(noted) }

    /// Kills the child, if there is one and it is still being started.
    func interrupt() {
        isOver.withLock { isOver in
            if !isOver { _ = unsafe operon_process_interrupt(noted) }
        }
    }

    /// The start is over; its descriptor may be closed and its number reused.
    fileprivate func end() { isOver.withLock { $0 = true } }

    deinit { unsafe noted.deallocate() }
}

/// Starts processes. Called only on the threads of a `StartPool`, because the death signal of a
/// child is tied to the thread that made it.
struct ProcessSpawn: Sendable {
    /// `/dev/null`, the standard input of every process.
    let input: Int32
    let files: CommonFiles

    /// What the C library's `execvp` uses without a `PATH`, and the usual place of installed
    /// programs.
    static let defaultPath = "/usr/local/bin:/usr/bin:/bin"

    private enum Refusal: Error {
        case failed(SpawnFailure)
        case short(SystemError)
    }

    /// Blocks until the program runs or has failed to start.
    func start(_ request: SpawnRequest, _ progress: StartProgress) -> StartPool.Result {
        do throws(Refusal) {
            return .running(try spawn(request, progress))
        } catch {
            switch error {
            case .failed(let failure): return .failed(failure)
            case .short(let error): return .short(error)
            }
        }
    }

    private func spawn(
        _ request: SpawnRequest,
        _ progress: StartProgress
    ) throws(Refusal) -> RunningProcess {
        try prepared { () throws(SystemError) in try files.repair() }
        let output = try prepared { () throws(SystemError) in try Pipe() }
        let error = try prepared { () throws(SystemError) in try Pipe() }
        if let user = request.user {
            // So that the command can open /dev/stdout and /dev/stderr. Without it the command
            // still has both.
            for pipe in [output.writer.number, error.writer.number] {
                _ = fchown(pipe, user.id, gid_t.max)
            }
        }
        let group = try prepared { () throws(SystemError) in
            try request.group?.make(of: request.id)
        }
        let startedAt = SystemClock.now()
        let spawned = ProcessSpawn.spawn(
            request,
            progress,
            group: group.number,
            input: input,
            output: output.writer.number,
            error: error.writer.number
        )
        progress.end()
        guard spawned.step == OPERON_PROCESS_STARTED else {
            // The descriptor of a child that failed to execute the program.
            if spawned.descriptor >= 0 { close(spawned.descriptor) }
            let isLimited = request.limits.memory > 0 || request.group?.limits.memory != nil
            if let shortage = Self.shortage(spawned, isLimited: isLimited) {
                throw .short(shortage)
            }
            throw .failed(SpawnFailure(spawned, of: request))
        }
        let place = request.state?.started(spawned.process)
        // The pipe writers are closed here: only the process and its descendants have them now.
        return RunningProcess(
            process: spawned.process,
            descriptor: Descriptor(owning: spawned.descriptor),
            output: output.reader,
            error: error.reader,
            startedAt: startedAt,
            place: place,
            request: request
        )
    }

    /// What the system lacked for a child; `nil`: the command is to blame.
    ///
    /// - Parameter isLimited: The command has a limit of its memory.
    static func shortage(_ spawned: operon_process_spawned, isLimited: Bool) -> SystemError? {
        // If memory is short because of the command's own limit, no other worker could start it
        // either. The child has no limit before it is in its control group.
        let hasLimit = isLimited && spawned.step.rawValue > OPERON_PROCESS_GROUP.rawValue
        if hasLimit, spawned.error == ENOMEM { return nil }
        let error = SystemError(doing: "starting a process", code: spawned.error)
        return error.isShortage ? error : nil
    }

    private func prepared<Value: ~Copyable>(
        _ body: () throws(SystemError) -> Value
    ) throws(Refusal) -> Value {
        do throws(SystemError) {
            return try body()
        } catch {
            guard !error.isShortageOrFullDisk else { throw .short(error) }
            throw .failed(SpawnFailure(message: "The process could not be started: \(error)."))
        }
    }

    /// Lays out the request for C, for the duration of the call.
    private static func spawn(
        _ request: SpawnRequest,
        _ progress: StartProgress,
        group: Int32?,
        input: Int32,
        output: Int32,
        error: Int32
    ) -> operon_process_spawned {
        let arguments = CStringArray(request.arguments)
        let environment = CStringArray(request.environment)
        let candidates = CStringArray(
            ProcessSpawn.candidates(for: request.arguments[0], path: request.path)
        )
        let directory = CStringArray(request.directory.map { [$0] } ?? [])
        var described = unsafe operon_process_request()
        unsafe described.candidates = candidates.constants
        unsafe described.arguments = UnsafePointer(arguments.pointers)
        unsafe described.environment = UnsafePointer(environment.pointers)
        unsafe described.directory = UnsafePointer(directory.pointers[0])
        unsafe described.input = input
        unsafe described.output = output
        unsafe described.error = error
        if let group {
            unsafe described.enters_control_group = 1
            unsafe described.control_group = group
        }
        unsafe described.niceness = request.niceness
        unsafe described.memory = request.limits.memory
        unsafe described.cpu_seconds = request.limits.cpuSeconds
        unsafe described.cpu_seconds_at_most = request.limits.cpuSecondsAtMost
        unsafe described.no_new_privileges = request.hasNoNewPrivileges ? 1 : 0
        if let user = request.user { unsafe described.user = UnsafePointer(user.entry) }
        unsafe described.dumps_no_core = request.dumpsNoCore ? 1 : 0
        unsafe described.progress = progress.noted
        return unsafe request.limits.processors.withUnsafeBufferPointer { words in
            unsafe described.processors = words.baseAddress
            unsafe described.processor_words = words.count
            return unsafe operon_process_spawn(&described)
        }
    }

    /// Starts one of Operon's own programs, which shares standard output and error; `nil` if that
    /// fails.
    static func spawn(_ command: Supervisor.Command) -> pid_t? {
        let input = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
        guard input >= 0 else { return nil }
        let nothing = Descriptor(owning: input)
        let arguments = CStringArray(command.arguments)
        let environment = CStringArray(ProcessEnvironment.lines(command.environment))
        let candidates = CStringArray(command.candidates)
        var described = unsafe operon_process_request()
        unsafe described.candidates = candidates.constants
        unsafe described.arguments = UnsafePointer(arguments.pointers)
        unsafe described.environment = UnsafePointer(environment.pointers)
        unsafe described.input = nothing.number
        unsafe described.output = STDOUT_FILENO
        unsafe described.error = STDERR_FILENO
        let spawned = unsafe operon_process_spawn(&described)
        if spawned.descriptor >= 0 { close(spawned.descriptor) }
        return spawned.step == OPERON_PROCESS_STARTED ? spawned.process : nil
    }

    /// Tries whether a process may enter a control group: a child enters it, and ends without
    /// having become a program.
    ///
    /// - Parameter file: The group's `cgroup.procs`, open for writing.
    static func probe(group file: borrowing Descriptor) throws(SystemError) {
        let nothing = CStringArray([])
        var described = unsafe operon_process_request()
        unsafe described.candidates = nothing.constants
        unsafe described.arguments = UnsafePointer(nothing.pointers)
        unsafe described.environment = UnsafePointer(nothing.pointers)
        unsafe described.input = file.number
        unsafe described.output = file.number
        unsafe described.error = file.number
        unsafe described.enters_control_group = 1
        unsafe described.control_group = file.number
        let spawned = unsafe operon_process_spawn(&described)
        if spawned.descriptor >= 0 { close(spawned.descriptor) }
        // Beyond the group, it only lacked a program.
        guard spawned.step == OPERON_PROCESS_EXECUTE else {
            throw SystemError(doing: "entering a control group", code: spawned.error)
        }
    }

    /// The paths at which a program may be, in the order to try them.
    static func candidates(for program: String, path: String) -> [String] {
        guard !program.utf8.contains(UInt8(ascii: "/")), !program.isEmpty else { return [program] }
        return path.split(separator: ":", omittingEmptySubsequences: false).map { folder in
            // POSIX: an empty entry means the current directory.
            folder.isEmpty ? "./\(program)" : "\(folder)/\(program)"
        }
    }
}

/// Strings in C layout: a list of pointers that ends with NULL, freed with its owner.
@safe private struct CStringArray: ~Copyable {
    let pointers: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
    private let count: Int

    init(_ strings: [String]) {
        count = strings.count
        unsafe pointers = .allocate(capacity: count + 1)
        for (index, string) in strings.enumerated() {
            // strdup fails only without memory, and then Swift itself cannot continue either.
            unsafe (pointers + index).initialize(to: strdup(string))
        }
        unsafe (pointers + count).initialize(to: nil)
    }

    /// The same pointers as a `const char *const *`.
    var constants: UnsafePointer<UnsafePointer<CChar>?> {
        unsafe UnsafeRawPointer(pointers).assumingMemoryBound(to: UnsafePointer<CChar>?.self)
    }

    deinit {
        for index in 0..<count { unsafe free(pointers[index]) }
        unsafe pointers.deallocate()
    }
}

// MARK: - Sentences

extension SpawnFailure {
    init(_ spawned: operon_process_spawned, of request: SpawnRequest) {
        let why = SystemError.text(spawned.error)
        switch spawned.step {
        case OPERON_PROCESS_DIRECTORY:
            message = SpawnFailure.directory(request.directory ?? "", spawned.error)
        case OPERON_PROCESS_EXECUTE:
            message = SpawnFailure.program(request, spawned.error)
        case OPERON_PROCESS_USER:
            let user = request.user?.name ?? ""
            message = "The process could not become the user “\(user)”: \(why)."
        case OPERON_PROCESS_LIMITS:
            message = "The process could not be given its limits of memory and CPU time: \(why)."
        case OPERON_PROCESS_GROUP:
            message = "The process could not be put into its control group: \(why)."
        case OPERON_PROCESS_DESCRIPTORS:
            message = "The process could not be given its input and output: \(why)."
        default:
            message = "The worker's machine could not start a process: \(why)."
        }
    }

    private static func directory(_ directory: String, _ code: Int32) -> String {
        switch code {
        case ENOENT: "The directory “\(directory)” does not exist on the worker's machine."
        case ENOTDIR: "“\(directory)” is not a directory on the worker's machine."
        case EACCES: "The worker may not enter the directory “\(directory)”."
        default: "The directory “\(directory)” cannot be entered: \(SystemError.text(code))."
        }
    }

    private static func program(_ request: SpawnRequest, _ code: Int32) -> String {
        let program = request.arguments[0]
        switch code {
        case ENOENT where program.isEmpty:
            return "The command names no program: its first argument is empty."
        case ENOENT where !program.contains("/"):
            return "The program “\(program)” was not found in PATH (\(request.path))."
        case ENOENT where exists(program, from: request.directory):
            return "The interpreter that “\(program)” names in its first line does not exist."
        case ENOENT, ENOTDIR:
            return "The program “\(program)” does not exist on the worker's machine."
        case EACCES:
            return "The program “\(program)” may not be executed: it is not an executable file."
        case ENOEXEC:
            return "“\(program)” is not a program: a script starts with a “#!” line."
        case E2BIG: return "The arguments and the environment are too large for the system."
        default: return "The program “\(program)” cannot be executed: \(SystemError.text(code))."
        }
    }

    private static func exists(_ program: String, from directory: String?) -> Bool {
        let isAbsolute = program.utf8.first == UInt8(ascii: "/")
        let path = isAbsolute ? program : "\(directory ?? ".")/\(program)"
        return unsafe access(path, F_OK) == 0
    }
}
