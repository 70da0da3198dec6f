import Foundation
import Testing

/// What a coordinator logs of its triggers.
@Suite(.timeLimit(.minutes(3))) struct TriggerLogTests {
    @Test func `a folder that is there again is told of as it was when it was gone`() async throws {
        try await Workspace.run { workspace in
            let folder = workspace.path("in")
            let files = FileManager.default
            try files.createDirectory(atPath: folder, withIntermediateDirectories: false)
            _ = try workspace.write("g.yaml", "name: g\noperations: { a: { run: 'true' } }\n")
            let trigger =
                "name: t\ngraph: g.yaml\non: { file: { path: \(folder), pattern: \"*\" } }\n"
            let up = try await Up(workspace)
            try await up.act("trigger", "add", try workspace.write("t.yaml", trigger))
            while try await !up.operon("trigger", "show", "t").output.contains("observing") {
                // Nobody is told of it but who asks.
                try await Task.sleep(for: .milliseconds(20))
            }
            try files.removeItem(atPath: folder)
            try await up.program.says("a trigger cannot be observed at present")
            try files.createDirectory(atPath: folder, withIntermediateDirectories: false)
            try await up.program.says("a trigger is observed again")
        }
    }

    @Test func `whoever fires a trigger does not decide how much is logged`() async throws {
        try await Workspace.run { workspace in
            let graph = """
                name: g
                parameters: { branch: }
                operations: { a: { run: "echo ${branch}" } }
                """
            _ = try workspace.write("g.yaml", graph)
            let trigger = """
                name: t
                graph: g.yaml
                set: { branch: "${event.data.ref}" }
                on: event
                """
            let up = try await Up(workspace)
            try await up.act("trigger", "add", try workspace.write("t.yaml", trigger))
            let sentence = "the graph of a trigger was refused"
            let start = ContinuousClock.now
            for number in 0..<20 {
                try await up.act("trigger", "fire", "t", "--data", #"{"ref":"a; b\#(number)"}"#)
            }
            try await up.program.says(sentence)
            let seconds = Int((ContinuousClock.now - start).components.seconds)
            let ended = try await up.interruptTwice()
            let told = ended.errorLines.count { $0.contains(sentence) }
            #expect(told <= seconds + 2, "\(told) lines in \(seconds) s")
        }
    }
}
