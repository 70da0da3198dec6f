import Foundation
import Glibc
import OperonModel
import OperonPorts
import Testing

@testable import OperonRuntime

/// Ends of processes, and signals to this one.
@Suite(.timeLimit(.minutes(1))) struct ProcessSourceTests {
    /// A child that nobody collects before `collect`. It inherits the blocked signals of a thread
    /// of the tests, so only SIGKILL is sure to end it.
    private struct Child: ~Copyable {
        let process: pid_t

        init(_ line: String) throws {
            var process: pid_t = 0
            var arguments: [UnsafeMutablePointer<CChar>?] =
                [strdup("sh"), strdup("-c"), strdup(line), nil]
            defer { arguments.forEach { free($0) } }
            try #require(posix_spawn(&process, "/bin/sh", nil, nil, &arguments, nil) == 0)
            self.process = process
        }

        func kill() { #expect(Glibc.kill(process, SIGKILL) == 0) }

        func collect() { #expect(waitpid(process, nil, 0) == process) }
    }

    @Test func `the end of a child is known before its parent collects it`() async throws {
        try await SourceFolder.with { folder in
            let child = try Child("exec sleep 1000")
            let identity = try ProcessIdentity(running: child.process)
            let run = SourceRun(ProcessWatcher(.process(identity), threads: folder.threads))
            try await run.observing()
            child.kill()
            let seen = try await run.next()
            try await run.task.value
            child.collect()

            #expect(
                seen.identity == "exit:\(identity)" && ProcessIdentity("\(identity)") == identity
            )
            #expect(seen["ended"] == "signal" && seen["signal"] == "SIGKILL")
            #expect(seen["process"] == "\(child.process)" && seen["code"] == nil)
        }
    }

    @Test func `what ended while nobody watched, or has another's number, is reported once`()
        async throws
    {
        try await SourceFolder.with { folder in
            let child = try Child("exec sleep 1000")
            let gone = try ProcessIdentity(running: child.process)
            child.kill()
            child.collect()
            let own = try ProcessIdentity(running: getpid())
            let other = try #require(ProcessIdentity("\(own.boot):\(getpid()):\(own.start - 1)"))
            let past = try #require(
                ProcessIdentity(
                    "00000000-0000-0000-0000-000000000000:\(getpid()):\(own.start)"
                )
            )
            for identity in [gone, other, past] {
                let run = SourceRun(ProcessWatcher(.process(identity), threads: folder.threads))
                let seen = try await run.next()
                try await run.task.value
                #expect(seen.identity == "exit:\(identity)" && seen["ended"] == "unknown")
            }
            #expect(throws: TriggerSourceError.self) { try ProcessIdentity(running: gone.process) }
            #expect(ProcessIdentity("\(own) ") == nil && ProcessIdentity("") == nil)
        }
    }

    @Test func `a file may appear late, hold anything, and name one process after another`()
        async throws
    {
        try await SourceFolder.with { folder in
            let watcher = ProcessWatcher(
                .pidFile(folder.at("pid")),
                threads: folder.threads,
                time: .impatient
            )
            let run = SourceRun(watcher)
            #expect(try await run.waiting().code == .absent)
            try folder.write("pid", "x")
            #expect(try await run.waiting().code == .unreadable)
            try folder.write("pid", String(repeating: " ", count: 5_000))
            #expect(try await run.waiting().code == .limitExceeded)
            #expect(unlink(folder.at("pid")) == 0)
            #expect(mkfifo(folder.at("pid"), 0o600) == 0)
            while try await run.waiting().code != .invalid {}
            #expect(unlink(folder.at("pid")) == 0)

            let first = try Child("exec sleep 1000")
            let second = try Child("exec sleep 1000")
            try folder.write("pid", " \(first.process)\nand more\n")
            try await run.observing()
            first.kill()
            let ends = try await run.next()
            #expect(ends["process"] == "\(first.process)")
            #expect(try await run.waiting().message.contains("has ended"))
            // The file is written anew while the first process is still a zombie.
            try folder.write("pid", "\(second.process)\n")
            try await run.observing()
            second.kill()
            let next = try await run.next()
            await run.stop()
            first.collect()
            second.collect()
            #expect(next["process"] == "\(second.process)" && next["signal"] == "SIGKILL")
        }
    }

    @Test func `a process that is no child ends with its code, or without one`() async throws {
        try await SourceFolder.with { folder in
            // Its parent collects it and goes on.
            let gate = folder.at("gate")
            #expect(mkfifo(gate, 0o600) == 0)
            let parent = try Child(
                "sh -c 'read x <\(gate); exit 5' & echo $! >\(folder.at("pid.new")); "
                    + "mv \(folder.at("pid.new")) \(folder.at("pid")); wait; exec sleep 1000"
            )
            let run = SourceRun(
                ProcessWatcher(
                    .pidFile(folder.at("pid")),
                    threads: folder.threads,
                    time: .impatient
                )
            )
            try await run.observing()
            try Data("go\n".utf8).write(to: URL(fileURLWithPath: gate))
            let seen = try await run.next()
            await run.stop()
            parent.kill()
            parent.collect()
            #expect(
                seen["ended"] == "exit" && seen["code"] == "5"
                    || seen["ended"] == "unknown" && seen["code"] == nil
            )
        }
    }

    @Test func `a signal to this process is reported, and several at a time are one`() async throws
    {
        let gate = Latch()
        let run = SourceRun(try SignalSource(name: "SIGUSR2")) { _ in await gate.wait() }
        try await run.observing()
        #expect(kill(getpid(), SIGUSR2) == 0)
        let first = try await run.next()
        for _ in 0..<50 { #expect(kill(getpid(), SIGUSR2) == 0) }
        gate.open()
        let second = try await run.next()
        await run.stop()
        var more = 0
        while await run.occurrences.next() != nil { more += 1 }

        #expect(first["signal"] == "SIGUSR2" && first.identity != second.identity)
        #expect(more < 10)
    }

    @Test(arguments: ["SIGTERM", "SIGKILL", "usr1", ""])
    func `other signals are refused with those that are possible`(name: String) {
        let error = #expect(throws: TriggerSourceError.self) { try SignalSource(name: name) }
        #expect(error?.message.hasSuffix("possible are SIGHUP, SIGUSR1, SIGUSR2") == true)
    }
}
