import COperonProcess
import Glibc
package import OperonModel
import Synchronization

/// Where a worker makes its control groups.
package enum ControlGroupPlace: Hashable, Sendable {
    /// In the group that the worker was started in. It moves itself, and the processes that started
    /// it, into a group below that.
    case own
    /// In the group of this folder, in which there are no processes. It is made if only its last
    /// part is missing.
    case folder(String)

    /// `own`, or the absolute path of a folder; `nil`: the text is neither.
    package init?(text: String) {
        if text == "own" {
            self = .own
        } else if text.hasPrefix("/") {
            self = .folder(text)
        } else {
            return nil
        }
    }
}

/// The control groups (cgroups(7), version 2) that hold the processes of operations to their
/// processors and their memory.
///
/// Owned by a worker. In the group that it was given, the *base*, it makes a group of its own, and
/// in that one a group for each attempt:
///
///     base
///     ├── operon.worker    this process and those that started it, if they were in the base
///     └── operon-5f…       the group of this worker
///         ├── 1            a running attempt
///         └── 2
///
/// A group with processes cannot pass controllers on to groups below it: hence `operon.worker`. The
/// worker locks its own group (flock(2)) while it lives, so that the next worker with the same base
/// can tell which groups a dead worker left, and remove them.
package final class ControlGroups: Sendable {
    /// How the group of one attempt ended.
    struct End: Hashable, Sendable {
        /// The kernel killed some of its processes for want of memory.
        var isOutOfMemory = false
        /// The group itself had reached its limit, and not the machine or a group around it.
        var hasReachedLimit = false
        /// Some of its processes had not died after `patience`, or nobody could look.
        var isLeft = false
    }

    /// The group below the base that the worker itself is in. A worker in a group of this name
    /// takes the group around it for its base, so it is a name that nobody else uses.
    static let leafName = "operon.worker"
    private static let prefix = "operon-"
    /// SIGKILL usually takes effect at once.
    private static let patience = Duration.seconds(2)
    /// How long a look at a dying group waits for news before the group is killed again.
    private static let lookDuration = Duration.milliseconds(100)
    /// A supervisor, a few shells, the first process of a container or a session.
    private static let ancestorsMax = 100
    /// Each further one needs another worker that starts at the same moment.
    private static let makesMax = 100

    /// The folder of the worker's own group.
    let path: String
    /// Groups that earlier workers left and that could not be removed.
    package let leftBehind: [String]
    private let files: ControlGroupFiles
    private let lock: Descriptor
    private let thread: SerialThread
    private let isClosed = Mutex(false)

    /// Moves this process into a group below the base if necessary, lets groups below the base have
    /// limits, removes what dead workers left, makes the worker's own group, and tries whether a
    /// process can be moved into a group below that. Blocks.
    package convenience init(
        _ place: ControlGroupPlace,
        incarnation: Incarnation
    ) throws(ControlGroupError) {
        try self.init(place, incarnation: incarnation, files: ControlGroupFiles())
    }

    init(
        _ place: ControlGroupPlace,
        incarnation: Incarnation,
        files: ControlGroupFiles
    ) throws(ControlGroupError) {
        let base = try Self.enter(place, files)
        do throws(SystemError) {
            try Self.passControllers(of: base, files)
        } catch {
            let hint =
                error.code == EBUSY
                ? "; there are other processes in the group: start the worker in one of its own"
                : ""
            throw ControlGroupError("\(error)\(hint)")
        }
        leftBehind = Self.removeDead(in: base, files)
        path = "\(base)/\(Self.prefix)\(incarnation)"
        do throws(SystemError) {
            lock = try Self.makeLocked(path, files)
            do throws(SystemError) {
                try Self.prepare(path, files)
                thread = try SerialThread(name: "operon-groups")
            } catch {
                unsafe operon_process_remove(path)
                throw error
            }
        } catch {
            throw ControlGroupError("\(error)")
        }
        self.files = files
    }

    /// Makes the group of an attempt. Blocks.
    ///
    /// - Returns: A file to which the attempt's process writes `0` to enter the group.
    func make(_ limits: ControlGroupLimits, of id: UInt64) throws(SystemError) -> Descriptor {
        let group = folder(of: id)
        try files.make(group)
        for (name, text) in limits.files {
            do throws(SystemError) {
                try files.write(text, "\(group)/\(name)")
            } catch {
                // A kernel without swap has no such file, and a process can then use none.
                guard name == ControlGroupLimits.swapFile, error.code == ENOENT else {
                    throw error
                }
            }
        }
        return try ControlGroupFiles.open("\(group)/cgroup.procs")
    }

    /// Kills what is left of an attempt and removes its group, if it has one.
    func end(_ id: UInt64) async -> End {
        await withCheckedContinuation { continuation in
            let isSubmitted = isClosed.withLock { isClosed in
                guard !isClosed else { return false }
                thread.submit { [self] in continuation.resume(returning: finish(folder(of: id))) }
                return true
            }
            // The guard has removed it.
            if !isSubmitted { continuation.resume(returning: End()) }
        }
    }

    /// Removes everything. Blocks while processes die. Nothing is made after that.
    func close() {
        isClosed.withLock { isClosed in
            isClosed = true
            thread.stop()
        }
        _ = Self.remove(path, files)
        _ = flock(lock.number, LOCK_UN)
    }

    private func folder(of id: UInt64) -> String { "\(path)/\(id)" }

    private func finish(_ group: String) -> End {
        guard !Self.isGone(group) else { return End() }
        var end = End()
        let isEmpty = Self.kill(group, files)
        let events = "\(group)/memory.events"
        end.isOutOfMemory = ControlGroupFiles.number(after: "oom_kill", in: events) > 0
        end.hasReachedLimit = ControlGroupFiles.number(after: "oom", in: events) > 0
        unsafe operon_process_remove(group)
        end.isLeft = !isEmpty
        return end
    }
}

// MARK: - Setting up

extension ControlGroups {
    /// Moves this process out of the base if it was started there. Returns the folder of the base.
    private static func enter(
        _ place: ControlGroupPlace,
        _ files: ControlGroupFiles
    ) throws(ControlGroupError) -> String {
        let base: String
        var (isMember, isMade) = (false, false)
        switch place {
        case .folder(let folder):
            base = folder
            isMade = try makeBase(folder, files)
        case .own:
            let own = try ownGroup(files)
            isMember = !own.hasSuffix("/\(leafName)")
            base = isMember ? own : String(own.dropLast(leafName.count + 1))
        }
        let given = ControlGroupFiles.words("\(base)/cgroup.controllers")
        let missing = files.controllers.filter { !given.contains($0[...]) }
        guard missing.isEmpty else {
            if isMade { _ = unsafe rmdir(base) }
            let list = missing.joined(separator: " and ")
            throw ControlGroupError("the group \(base) was not given the controllers \(list)")
        }
        if isMember { try leave(base, files) }
        return base
    }

    /// Makes a group if it is absent, in a group that is there. Returns whether it was absent.
    private static func makeBase(
        _ folder: String,
        _ files: ControlGroupFiles
    ) throws(ControlGroupError) -> Bool {
        let isAbsent = isGone(folder)
        if isAbsent {
            let parts = folder.split(separator: "/")
            let parent = "/" + parts.dropLast().joined(separator: "/")
            guard files.isControlGroup(parent) else {
                throw ControlGroupError(
                    "\(folder) does not exist, and cannot be made: \(parent) is no control group "
                        + "of version 2"
                )
            }
            do throws(SystemError) {
                try files.make(folder)
            } catch {
                throw ControlGroupError("\(error)")
            }
        }
        guard files.isControlGroup(folder) else {
            throw ControlGroupError("\(folder) is no control group of version 2")
        }
        return isAbsent
    }

    /// Moves this process and those that started it, a supervisor or the first process of a
    /// container, into a group below theirs. Moves nobody if others would stay.
    private static func leave(
        _ base: String,
        _ files: ControlGroupFiles
    ) throws(ControlGroupError) {
        // Only the group around all others has no such file, and only that one may have processes.
        guard !isGone("\(base)/cgroup.events") else { return }
        let above = ancestors.map(String.init)
        let members = try members(of: base)
        let movable = [String(getpid())] + above
        if let other = members.first(where: { !movable.contains(String($0)) }) {
            // 0 is the kernel's number for those that have none here.
            let who = other == "0" ? "a process of another PID namespace" : "process \(other)"
            throw ControlGroupError(
                "\(who) is in the group \(base), too: start the worker in a group of its own"
            )
        }
        do throws(SystemError) {
            let leaf = "\(base)/\(leafName)"
            try files.make(leaf)
            // The writer itself.
            try files.write("0", "\(leaf)/cgroup.procs")
            for process in above where members.contains(process[...]) {
                do throws(SystemError) {
                    try files.write(process, "\(leaf)/cgroup.procs")
                } catch {
                    // It has ended meanwhile.
                    guard error.code == ESRCH else { throw error }
                }
            }
        } catch {
            throw ControlGroupError("\(error)")
        }
    }

    private static func members(of group: String) throws(ControlGroupError) -> [Substring] {
        do throws(SystemError) {
            return try ControlGroupFiles.processes(in: group)
        } catch {
            throw ControlGroupError("\(error)")
        }
    }

    /// The processes above this one, from its parent.
    private static var ancestors: [pid_t] {
        var ancestors: [pid_t] = []
        var process = getppid()
        while process > 0, ancestors.count < ancestorsMax {
            ancestors.append(process)
            process = KernelProcess(process)?.parent ?? 0
        }
        return ancestors
    }

    private static func ownGroup(_ files: ControlGroupFiles) throws(ControlGroupError) -> String {
        let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        guard let mount = mounts.map({ files.root + $0 }).first(where: files.isControlGroup) else {
            let list = mounts.joined(separator: " nor at ")
            throw ControlGroupError("version 2 is mounted neither at \(list)")
        }
        let lines = ControlGroupFiles.text(files.root + "/proc/self/cgroup").split(separator: "\n")
        guard let path = lines.first(where: { $0.hasPrefix("0::/") })?.dropFirst("0::/".count)
        else { throw ControlGroupError("the kernel does not say in which one this process is") }
        return path.isEmpty ? mount : "\(mount)/\(path)"
    }

    /// Lets the groups of attempts have limits, and tries whether processes can be moved into them:
    /// otherwise each enforced attempt would fail instead of the start.
    private static func prepare(
        _ path: String,
        _ files: ControlGroupFiles
    ) throws(SystemError) {
        guard !isGone("\(path)/cgroup.kill") else {
            throw SystemError(doing: "killing groups, which needs Linux 5.14", code: ENOSYS)
        }
        try passControllers(of: path, files)
        let probe = "\(path)/probe"
        try files.make(probe)
        defer { unsafe operon_process_remove(probe) }
        let file = try ControlGroupFiles.open("\(probe)/cgroup.procs")
        do throws(SystemError) {
            try ProcessSpawn.probe(group: file)
        } catch {
            throw SystemError(
                doing: "moving a process of this worker into \(probe), for which its user must be "
                    + "allowed to write cgroup.procs of the nearest group around both",
                code: error.code
            )
        }
    }

    /// Lets the groups below a group have limits.
    private static func passControllers(
        of group: String,
        _ files: ControlGroupFiles
    ) throws(SystemError) {
        let file = "\(group)/cgroup.subtree_control"
        let passed = ControlGroupFiles.words(file)
        let missing = files.controllers.filter { !passed.contains($0[...]) }
        guard !missing.isEmpty else { return }
        try files.write(missing.map { "+\($0)" }.joined(separator: " "), file)
    }

    /// Makes a group and locks it. Another worker may take it for one of a dead worker before it is
    /// locked, and remove it: then it is made again.
    private static func makeLocked(
        _ path: String,
        _ files: ControlGroupFiles
    ) throws(SystemError) -> Descriptor {
        for _ in 0..<makesMax {
            try files.make(path)
            let number = unsafe Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard number >= 0 || errno == ENOENT else { throw .current("opening \(path)") }
            guard number >= 0 else { continue }
            let lock = Descriptor(owning: number)
            guard flock(lock.number, LOCK_EX) == 0 else { throw .current("locking \(path)") }
            if unsafe access(path, F_OK) == 0 { return lock }
        }
        throw SystemError(doing: "making \(path), which other workers remove", code: EAGAIN)
    }
}

// MARK: - Removing

extension ControlGroups {
    /// Removes the groups of workers that are dead. Returns those that could not be removed.
    private static func removeDead(in base: String, _ files: ControlGroupFiles) -> [String] {
        let dead = ControlGroupFiles.folders(in: base).filter { name in
            name.hasPrefix(prefix) && Incarnation(text: String(name.dropFirst(prefix.count))) != nil
        }
        return dead.map { "\(base)/\($0)" }.filter { group in
            let number = unsafe Glibc.open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard number >= 0 else { return false }
            let lock = Descriptor(owning: number)
            // A live worker holds the lock.
            guard flock(lock.number, LOCK_EX | LOCK_NB) == 0 else { return false }
            return !remove(group, files)
        }
    }

    private static func remove(_ group: String, _ files: ControlGroupFiles) -> Bool {
        _ = kill(group, files)
        unsafe operon_process_remove(group)
        return isGone(group)
    }

    /// Whether a file or a group certainly does not exist.
    private static func isGone(_ path: String) -> Bool {
        unsafe access(path, F_OK) != 0 && errno == ENOENT
    }

    /// Kills all processes in a group and below it, and waits for their end. `false`: some are left
    /// after `patience`, or nobody could look until then.
    private static func kill(_ group: String, _ files: ControlGroupFiles) -> Bool {
        let deadline = SystemClock.now() + patience
        while true {
            do throws(SystemError) {
                try files.write("1", "\(group)/cgroup.kill")
            } catch {
                // What is left then is found below, and killed in the next round.
            }
            let left = deadline - SystemClock.now()
            let duration = max(.zero, min(left, lookDuration))
            do throws(SystemError) {
                if try isEmpty(group, within: duration) { return true }
            } catch {
                guard !isGone(group) else { return true }
                // The system may have a descriptor again.
                _ = poll(nil, 0, milliseconds(duration))
            }
            guard left > .zero else { return false }
        }
    }

    /// Whether a group has no processes, now or after some time.
    private static func isEmpty(
        _ group: String,
        within duration: Duration
    ) throws(SystemError) -> Bool {
        let path = "\(group)/cgroup.events"
        let number = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw .current("opening \(path)") }
        let events = Descriptor(owning: number)
        let none = "populated 0"
        guard try !ControlGroupFiles.text(of: events).contains(none) else { return true }
        // The kernel wakes it when the file says something new.
        var polled = pollfd(fd: events.number, events: Int16(POLLPRI), revents: 0)
        _ = unsafe poll(&polled, 1, milliseconds(duration))
        return try ControlGroupFiles.text(of: events).contains(none)
    }

    private static func milliseconds(_ duration: Duration) -> Int32 {
        Int32(clamping: duration.nanoseconds / 1_000_000)
    }
}

/// Why a worker cannot make control groups: a sentence for the person who starts it.
package struct ControlGroupError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    package var description: String { message }

    init(_ why: String) { message = "Control groups cannot be used: \(why)." }
}
