import Foundation
import Glibc
import OperonModel
import OperonPorts
import Testing

@testable import OperonRuntime

/// Files as occurrences, with the kernel's inotify.
@Suite(.timeLimit(.minutes(1))) struct FileWatcherTests {
    /// Trying each way in which the wildcards can match would take for ever.
    @Test func `a pattern of as many wildcards as there can be is matched in time`() throws {
        let name = [UInt8](repeating: UInt8(ascii: "a"), count: 255)
        let wild = String(repeating: "*a", count: 127)
        for (pattern, isMatch) in [
            (wild, true), (wild + "b", false), ("*" + String(repeating: "?*", count: 127), true),
            (String(repeating: "*", count: 254) + "b", false),
            (String(repeating: "*[!b]", count: 50) + "*b", false),
        ] {
            #expect(try NamePattern(pattern: pattern).matches(name) == isMatch, "\(pattern)")
        }
    }

    private func watcher(
        _ folder: SourceFolder,
        _ name: String = "",
        pattern: String? = "*.csv",
        changes: Set<FileWatcher.Change> = [.written],
        filesMax: Int = FileWatcher.filesMax
    ) throws -> FileWatcher {
        FileWatcher(
            try .init(path: folder.at(name), pattern: pattern, changes: changes),
            threads: folder.threads,
            time: .impatient,
            filesMax: filesMax
        )
    }

    @Test func `files that came while nobody watched have the same identities in every run`()
        async throws
    {
        try await SourceFolder.with { folder in
            for (name, seconds) in [("new.csv", 2_000), ("old.csv", 1_000), ("a.txt", 3_000)] {
                try folder.write(name)
                var times = Array(repeating: timeval(tv_sec: seconds, tv_usec: 7), count: 2)
                #expect(utimes(folder.at(name), &times) == 0)
            }
            let first = SourceRun(try watcher(folder, changes: [.created, .written]))
            let seen = try await first.next(4)
            try await first.observing()
            try folder.write("later.csv")
            let later = try await first.next(2)
            await first.stop()

            #expect(seen.map { $0["name"] } == ["old.csv", "old.csv", "new.csv", "new.csv"])
            #expect(seen.map { $0["change"] } == ["created", "written", "created", "written"])
            #expect(later.map { $0["change"] } == ["created", "written"])
            #expect(seen[0]["path"] == folder.at("old.csv"))
            #expect(seen[1]["modified"] == "1000" && seen[1]["bytes"] == "1")
            let second = SourceRun(try watcher(folder, changes: [.created, .written]))
            #expect(Set(try await second.next(6)) == Set(seen + later))
            await second.stop()
            #expect(Set((seen + later).map(\.identity)).count == 6)
        }
    }

    @Test func `a file is written when it is closed, and again only after another change`()
        async throws
    {
        try await SourceFolder.with { folder in
            let run = SourceRun(try watcher(folder))
            try await run.observing()
            let file = fopen(folder.at("slow.csv"), "w")!
            fputs("half", file)
            fflush(file)
            try folder.write("quick.csv")
            #expect(try await run.next()["name"] == "quick.csv")
            fputs("whole", file)
            fclose(file)
            let first = try await run.next()
            // Opened for writing, and closed as it was.
            fclose(fopen(folder.at("slow.csv"), "a"))
            try folder.write("other.csv")
            #expect(try await run.next()["name"] == "other.csv")
            let again = fopen(folder.at("slow.csv"), "a")!
            fputs("more", again)
            fclose(again)
            let second = try await run.next()
            await run.stop()

            #expect(first["name"] == "slow.csv" && first["bytes"] == "9")
            #expect(second["name"] == "slow.csv" && second["bytes"] == "13")
            #expect(first.identity != second.identity)
        }
    }

    @Test func `a file that gets its name by renaming or linking is there at once`() async throws {
        try await SourceFolder.with { folder in
            folder.makeFolder("in")
            try folder.write("outside")
            let run = SourceRun(try watcher(folder, "in"))
            try await run.observing()
            folder.rename("outside", "in/moved.csv")
            #expect(try await run.next()["name"] == "moved.csv")
            try folder.write("in/part.tmp")
            folder.rename("in/part.tmp", "in/part.csv")
            #expect(try await run.next()["name"] == "part.csv")
            try folder.write("linked")
            #expect(link(folder.at("linked"), folder.at("in/linked.csv")) == 0)
            #expect(try await run.next()["name"] == "linked.csv")
            await run.stop()
        }
    }

    @Test func `deleted, renamed and changed files are told apart`() async throws {
        try await SourceFolder.with { folder in
            folder.makeFolder("in")
            for name in ["a", "b", "c", "d"] { try folder.write("in/\(name).csv") }
            let changes: Set<FileWatcher.Change> = [.created, .deleted, .renamed, .attributes]
            let run = SourceRun(try watcher(folder, "in", changes: changes))
            _ = try await run.next(4)
            try await run.observing()
            #expect(chmod(folder.at("in/a.csv"), 0o600) == 0)
            #expect(unlink(folder.at("in/b.csv")) == 0)
            folder.rename("in/c.csv", "in/c.old")
            folder.rename("in/d.csv", "d.csv")
            var seen = try await run.next(4)
            // Another file of the same name, which is deleted when it is known.
            try folder.write("in/b.csv")
            seen += try await run.next(1)
            #expect(unlink(folder.at("in/b.csv")) == 0)
            seen += try await run.next(1)
            await run.stop()

            #expect(
                seen.map { "\($0["change"]!) \($0["name"]!)" } == [
                    "attributes a.csv", "deleted b.csv", "renamed c.csv", "renamed d.csv",
                    "created b.csv", "deleted b.csv",
                ]
            )
            #expect(seen[2]["to"] == folder.at("in/c.old") && seen[3]["to"] == nil)
            #expect(Set(seen.map(\.identity)).count == 6)
        }
    }

    @Test func `a deleted file and the next of its name are created twice`() async throws {
        try await SourceFolder.with { folder in
            let run = SourceRun(try watcher(folder, changes: [.created]))
            try await run.observing()
            var identities: Set<String> = []
            for _ in 0..<5 {
                try folder.write("a.csv")
                identities.insert(try await run.next().identity)
                #expect(unlink(folder.at("a.csv")) == 0)
            }
            await run.stop()
            #expect(identities.count == 5)
        }
    }

    @Test func `links, folders, hidden files and names that are no UTF-8 are left out`()
        async throws
    {
        try await SourceFolder.with { folder in
            try folder.write("target", "secret")
            #expect(symlink(folder.at("target"), folder.at("link.csv")) == 0)
            folder.makeFolder("folder.csv")
            try folder.write(".hidden.csv")
            try folder.write("a\n\u{1B}[2J\"\\.csv")
            let wild =
                Array(folder.at("\u{1}").utf8CString.dropLast(2)) + [-1, 0x0A] + [
                    0x2E, 0x63, 0x73, 0x76, 0,
                ]
            close(open(wild, O_CREAT | O_WRONLY, 0o600))
            let run = SourceRun(try watcher(folder))
            let error = try await run.refused()
            #expect(try await run.next()["name"] == "a\n\u{1B}[2J\"\\.csv")
            try await run.observing()
            close(open(wild, O_TRUNC | O_WRONLY))
            try folder.write("last.csv")
            #expect(try await run.next()["name"] == "last.csv")
            await run.stop()

            #expect(error.code == .unreadable)
            #expect(
                error.message
                    == "the name of the file “\\xff\\x0a.csv” in “\(folder.path)” is not UTF-8:"
                    + " rename it"
            )
        }
    }

    @Test func `one file is watched by its name alone, whatever its name contains`() async throws {
        try await SourceFolder.with { folder in
            let run = SourceRun(try watcher(folder, "[a]*.csv", pattern: nil))
            try await run.observing()
            try folder.write("a.csv")
            try folder.write("[a]*.csv")
            #expect(try await run.next()["name"] == "[a]*.csv")
            await run.stop()
        }
    }

    @Test func `a folder is watched when it appears, and again when it was replaced`() async throws
    {
        try await SourceFolder.with { folder in
            let run = SourceRun(try watcher(folder, "up/in"))
            let absent = try await run.waiting()
            #expect(absent.code == .absent)
            #expect(absent.message == "the folder “\(folder.at("up/in"))” does not exist")
            folder.makeFolder("up")
            folder.makeFolder("up/in")
            try await run.observing()
            try folder.write("up/in/1.csv")
            #expect(try await run.next()["name"] == "1.csv")

            // Removed with all that is in it, and made again.
            try FileManager.default.removeItem(atPath: folder.at("up/in"))
            #expect(try await run.waiting().code == .absent)
            folder.makeFolder("up/in")
            try folder.write("up/in/2.csv")
            #expect(try await run.next()["name"] == "2.csv")

            // A folder further up is replaced, which the kernel does not tell.
            folder.rename("up", "away")
            folder.makeFolder("up")
            folder.makeFolder("up/in")
            try folder.write("up/in/3.csv")
            #expect(try await run.next()["name"] == "3.csv")
            await run.stop()
        }
    }

    @Test func `what the kernel's queue has no room for is found by another look`() async throws {
        let queue = try String(
            contentsOfFile: "/proc/sys/fs/inotify/max_queued_events",
            encoding: .utf8
        )
        let count = try #require(Int(queue.trimmingCharacters(in: .whitespacesAndNewlines)))
        try #require(count <= 100_000, "the queue of this machine is too long to be filled")
        try await SourceFolder.with { folder in
            let gate = Latch()
            let run = SourceRun(try watcher(folder)) { _ in await gate.wait() }
            try await run.observing()
            try folder.write("first.csv")
            let first = try await run.next()
            // Each file is two events: made and closed.
            for number in 0..<(count / 2 + 500) {
                close(open(folder.at("\(number).csv"), O_CREAT | O_WRONLY, 0o600))
            }
            gate.open()
            let rest = try await run.next(count / 2 + 500)
            try folder.write("last.csv")
            let last = try await run.next()
            await run.stop()

            #expect(first["name"] == "first.csv" && last["name"] == "last.csv")
            #expect(Set(rest.map { $0["name"] }).count == rest.count)
        }
    }

    @Test func `a folder with too many files says so, and is watched when it has fewer`()
        async throws
    {
        try await SourceFolder.with { folder in
            for name in ["1.csv", "2.csv", "3.csv", "4.txt"] { try folder.write(name) }
            let run = SourceRun(try watcher(folder, filesMax: 2))
            let error = try await run.waiting()
            #expect(error.code == .limitExceeded && error.message.contains("more than 2 files"))
            #expect(unlink(folder.at("1.csv")) == 0)
            #expect(try await run.next()["name"] == "2.csv")
            await run.stop()
        }
    }

    @Test func `an occurrence that could not be stored ends the run and is reported by the next`()
        async throws
    {
        struct Full: Error {}
        try await SourceFolder.with { folder in
            try folder.write("a.csv")
            let run = SourceRun(try watcher(folder)) { _ in throw Full() }
            let lost = try await run.next()
            await #expect(throws: Full.self) { try await run.task.value }
            let again = SourceRun(try watcher(folder))
            #expect(try await again.next() == lost)
            await again.stop()
        }
    }

    @Test(.enabled(if: geteuid() != 0, "root may read everything"))
    func `a folder that may not be read is named with the user`() async throws {
        try await SourceFolder.with { folder in
            folder.makeFolder("in")
            #expect(chmod(folder.at("in"), 0) == 0)
            let run = SourceRun(try watcher(folder, "in"))
            let error = try await run.waiting()
            await run.stop()
            #expect(error.code == .accessRefused)
            #expect(error.message.hasPrefix("the user \(OwnProcess.userName) may not read"))
        }
    }

    @Test(arguments: [
        ("in", "*.csv", "“in” is not an absolute path"),
        ("/in", "a/*.csv", "only files directly in the folder are watched"),
        ("/in", "", "the pattern “” names no file"),
        ("/in\0", "*", "contains a NUL byte"),
        ("/", nil, "the name “” names no file"),
        ("/in/..", nil, "the name “..” names no file"),
        ("/in", String(repeating: "*", count: 256), "is longer than 255 bytes"),
    ])
    func `what names no files is refused in words`(
        path: String,
        pattern: String?,
        words: String
    ) throws {
        let error = #expect(throws: TriggerSourceError.self) {
            try FileWatcher.Configuration(path: path, pattern: pattern)
        }
        #expect(error?.code == .invalid && error?.message.contains(words) == true)
    }
}
