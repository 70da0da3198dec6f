import COperonProcess
import Foundation
import Glibc
import OperonModel
import Testing

@testable import OperonRuntime

/// What a worker keeps over its lives, and what the next life does about the last.
@Suite struct StateDirectoryTests {
    private static let first = Incarnation(rawValue: 0xA1)
    private static let second = Incarnation(rawValue: 0xB2)

    private static func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = ProcessSupport.temporaryFolder()
        do {
            try await body(folder)
        } catch {
            operon_process_remove(folder)
            throw error
        }
        operon_process_remove(folder)
    }

    /// A program in a group of its own, with nothing in its environment but this.
    private static func spawn(_ arguments: [String], environment: [String] = []) throws -> pid_t {
        let texts = [arguments, environment].map { $0.map { strdup($0) } + [nil] }
        defer { for text in texts.joined() { free(text) } }
        let paths = [UnsafePointer(texts[0][0]), nil]
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(null) }
        var request = operon_process_request()
        request.input = null
        request.output = null
        request.error = null
        let spawned = paths.withUnsafeBufferPointer { paths in
            texts[0].withUnsafeBufferPointer { arguments in
                texts[1].withUnsafeBufferPointer { environment in
                    request.candidates = paths.baseAddress
                    request.arguments = arguments.baseAddress
                    request.environment = environment.baseAddress
                    return operon_process_spawn(&request)
                }
            }
        }
        try #require(spawned.step == OPERON_PROCESS_STARTED)
        close(spawned.descriptor)
        return spawned.process
    }

    private static func end(_ process: pid_t) {
        kill(process, SIGKILL)
        operon_process_join(process)
    }

    private static func mode(_ path: String) -> mode_t {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    @Test func `the id stays, and the next life says that the last is dead`() async throws {
        try await Self.withFolder { folder in
            let path = "\(folder)/deep/worker"
            let id: String
            do {
                let state = try StateDirectory(path: path, incarnation: Self.first)
                #expect(state.predecessor == nil)
                try state.begin(marker: "OPERON_TEST=\(folder)", files: "")
                id = state.worker
            }
            let state = try StateDirectory(path: path, incarnation: Self.second)

            #expect(Incarnation(text: id) != nil)
            #expect(state.worker == id)
            #expect(state.predecessor == Self.first)
            #expect(Self.mode("\(folder)/deep") == 0o700)
            #expect(Self.mode(path) == 0o700)
            for name in ["lock", "worker", "life", "groups"] {
                #expect(Self.mode("\(path)/\(name)") == 0o600, "\(name)")
            }
        }
    }

    @Test(arguments: [0o777, 0o722, 0o770, 0o720] as [mode_t])
    func `a directory in which others may write is refused`(mode: mode_t) async throws {
        try await Self.withFolder { folder in
            chmod(folder, mode)
            let error = #expect(throws: StateDirectoryError.self) {
                try StateDirectory(path: folder, incarnation: Self.first)
            }

            #expect(error?.isHeld == false)
            let octal = String(mode, radix: 8)
            #expect(
                error?.message
                    == "Other users may write to the state directory \(folder) (mode \(octal)): "
                    + "chmod go-w \(folder)"
            )
            #expect(access("\(folder)/lock", F_OK) != 0)
        }
    }

    @Test func `a directory that everybody can read is used with a warning`() async throws {
        try await Self.withFolder { folder in
            chmod(folder, 0o755)
            let state = try StateDirectory(path: folder, incarnation: Self.first)
            #expect(state.warning?.contains("chmod o= \(folder)") == true)

            chmod(folder, 0o750)
            #expect(state.warning == nil)
        }
    }

    @Test func `one process holds it, and another is told which`() async throws {
        try await Self.withFolder { folder in
            let state = try StateDirectory(path: folder, incarnation: Self.first)
            let error = #expect(throws: StateDirectoryError.self) {
                try StateDirectory(path: folder, incarnation: Self.second)
            }

            #expect(error?.isHeld == true)
            #expect(error?.message.contains("is held by process \(getpid())") == true)
            #expect(state.predecessor == nil)
        }
    }

    @Test func `what is left of a group is killed, whatever its environment`() async throws {
        try await Self.withFolder { folder in
            // Its leader goes, and leaves a child that nothing but its group gives away.
            let leader = try Self.spawn(
                ["/bin/sh", "-c", "sleep 1000 & echo $! > \(folder)/child; exec sleep 1000"],
                environment: ["PATH=/usr/bin:/bin"]
            )
            #expect(await eventually { self.number(in: "\(folder)/child") != nil })
            let child = try #require(number(in: "\(folder)/child"))
            do {
                let state = try StateDirectory(path: folder, incarnation: Self.first)
                try state.begin(marker: "OPERON_TEST=\(folder)", files: "")
                _ = state.started(leader)
            }
            Self.end(leader)
            #expect(isAlive(child))
            let state = try StateDirectory(path: folder, incarnation: Self.second)

            #expect(state.predecessor == Self.first)
            #expect(await eventually { !isAlive(child) })
        }
    }

    @Test func `what has left its group is killed by its environment`() async throws {
        try await Self.withFolder { folder in
            let marker = "OPERON_TEST=\(folder)"
            do {
                let state = try StateDirectory(path: folder, incarnation: Self.first)
                try state.begin(marker: marker, files: "\(folder)/operon-files")
            }
            #expect(mkdir("\(folder)/operon-files", 0o700) == 0)
            let process = try Self.spawn(["/bin/sleep", "1000"], environment: [marker])
            // The kernel shows the environment a moment after the program has begun.
            while SmallFile.read("/proc/\(process)/environ")?.isEmpty != false {
                await Task.yield()
            }
            let state = try StateDirectory(path: folder, incarnation: Self.second)

            #expect(state.predecessor == Self.first)
            // It was killed, and is gone in a moment.
            while isAlive(process) { await Task.yield() }
            Self.end(process)
            #expect(Self.mode("\(folder)/operon-files") == 0)
        }
    }

    @Test func `what has ended, or has another's number, or ran before the boot, is left`()
        async throws
    {
        try await Self.withFolder { folder in
            let bystander = try Self.spawn(["/bin/sleep", "1000"])
            defer { Self.end(bystander) }
            do {
                let state = try StateDirectory(path: folder, incarnation: Self.first)
                try state.begin(marker: "OPERON_TEST=\(folder)", files: "")
                state.ended(state.started(bystander))
            }
            #expect(ProcessGroupTable.entries(of: "\(folder)/groups") == [])
            let start = try #require(KernelProcess(bystander)).start
            let later = ProcessGroupTable.Entry(process: bystander, start: start + 1)
            #expect(!later.kill(session: getsid(0)))

            let state = try StateDirectory(path: folder, incarnation: Self.second)
            #expect(state.predecessor == Self.first)
            let text = try String(contentsOfFile: "\(folder)/life", encoding: .utf8)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            let boot = String(lines[2])
            let life = try #require(WorkerRun(text: text.replacing(boot, with: "another")))
            let entry = ProcessGroupTable.Entry(process: bystander, start: start)
            #expect(life.isEnded(groups: [entry]))
            #expect(isAlive(bystander))
        }
    }

    @Test func `a life is not said to be dead where the system does not answer`() throws {
        let life = WorkerRun(incarnation: Self.first, marker: "OPERON_TEST=none", files: "")
        #expect(life.isEnded(groups: []))
        #expect(!life.isEnded(groups: nil))
        #expect(!life.isEnded(groups: [], boot: nil))
        #expect(!life.isEnded(groups: [], numbers: nil))
        #expect(life.isEnded(groups: [], boot: "another"))
    }

    @Test func `a torn record is no record, and a broken id is refused`() async throws {
        try await Self.withFolder { folder in
            do {
                let state = try StateDirectory(path: folder, incarnation: Self.first)
                try state.begin(marker: "OPERON_TEST=\(folder)", files: "")
            }
            let life = try String(contentsOfFile: "\(folder)/life", encoding: .utf8)
            for count in 0..<life.utf8.count {
                #expect(WorkerRun(text: String(life.prefix(count))) == nil)
            }
            try "not an id\n".write(toFile: "\(folder)/worker", atomically: true, encoding: .utf8)
            let error = #expect(throws: StateDirectoryError.self) {
                try StateDirectory(path: folder, incarnation: Self.second)
            }
            #expect(error?.isHeld == false)
            #expect(error?.message.contains("\(folder)/worker") == true)
        }
    }

    @Test func `an id that cannot be read is not replaced`() async throws {
        try await Self.withFolder { folder in
            do { _ = try StateDirectory(path: folder, incarnation: Self.first) }
            let files = FileManager.default
            try files.moveItem(atPath: "\(folder)/worker", toPath: "\(folder)/moved")
            try files.createSymbolicLink(
                atPath: "\(folder)/worker",
                withDestinationPath: "\(folder)/moved"
            )
            let error = #expect(throws: StateDirectoryError.self) {
                try StateDirectory(path: folder, incarnation: Self.second)
            }
            #expect(error?.message.contains("reading \(folder)/worker") == true)
            let target = try files.destinationOfSymbolicLink(atPath: "\(folder)/worker")
            #expect(target == "\(folder)/moved")
        }
    }

    @Test func `a name in parentheses does not mislead the reading of a process`() {
        let fields = ["S", "1", "7", "8", "0", "-1"] + (9...21).map(String.init) + ["4711", "0"]
        let stat = "42 (a) b ()) " + fields.joined(separator: " ")
        let process = KernelProcess(42, stat: stat)

        #expect(process?.parent == 1)
        #expect(process?.group == 7)
        #expect(process?.session == 8)
        #expect(process?.start == 4711)
        #expect(KernelProcess(42, stat: "42 (a) S 1") == nil)
    }

    private func number(in path: String) -> pid_t? {
        let text = try? String(contentsOfFile: path, encoding: .utf8)
        return text?.split(separator: "\n").first.flatMap { pid_t($0) }
    }
}
