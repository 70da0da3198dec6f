import OperonGraphFile
import OperonModel
import Testing

/// The published workflows of the fixtures; the numbers are those of their README.
@Suite struct WorkloadTests {
    @Test(arguments: [
        ("1000genome-chameleon-12ch-250k-001", 492, 636, 0, 28_130.0),
        ("bwa-chameleon-medium-001", 1_004, 4_000, 0, 3_612.0),
        ("montage-chameleon-2mass-05d-001", 1_738, 4_698, 0, 8_695.0),
        ("rnaseq-dirt02-001", 197, 451, 56, 2_580.0),
        ("ninja-curl-7.88.1", 1_702, 3_355, 236, 73.9),
    ])
    func `a published workflow is read with all its tasks, edges and run times`(
        name: String,
        tasks: Int,
        edges: Int,
        instant: Int,
        work: Double
    ) throws {
        let file = try GraphFile.read(
            path: Fixture.path(name + ".json"),
            options: GraphFileOptions(replayScale: 1)
        )

        let operations = file.graph.operations
        #expect(operations.count == tasks)
        #expect(operations.reduce(0) { $0 + $1.dependencies.count } == edges)
        #expect(operations.count { $0.work == .wait(.zero) } == instant)
        let total = operations.reduce(0.0) { $0 + ($1.expectedDuration?.seconds ?? 0) }
        #expect(abs(total - work) < max(0.5, work * 0.001))
        #expect(file.warnings.isEmpty)
    }

    @Test func `the scale shortens every wait`() throws {
        let path = Fixture.path("rnaseq-dirt02-001.json")
        let full = try GraphFile.read(path: path, options: GraphFileOptions(replayScale: 1))
        let tenth = try GraphFile.read(path: path, options: GraphFileOptions(replayScale: 0.1))

        for (whole, part) in zip(full.graph.operations, tenth.graph.operations) {
            let (a, b) = (try #require(whole.expectedDuration), try #require(part.expectedDuration))
            #expect(abs(a.seconds / 10 - b.seconds) < 1e-8)
            #expect(part.work == .wait(b))
        }
    }

    @Test func `a recorded workflow without a scale is refused with the way out`() {
        let path = Fixture.path("rnaseq-dirt02-001.json")
        let error = #expect(throws: GraphFileError.self) { try GraphFile.read(path: path) }
        #expect(error?.problems.map(\.code) == [.unsupported])
        #expect(error?.description.contains("--replay SCALE") == true)
    }

    @Test func `an old workflow keeps run times beside its tasks and parents by name`() throws {
        let text = """
            {"name": "old", "schemaVersion": "1.3", "workflow": {"makespan": 9, "tasks": [
              {"name": "split_1", "id": "ID1", "runtime": 1.5, "parents": []},
              {"name": "count_1", "id": "ID2", "runtimeInSeconds": 2, "parents":
                ["split_1", "ID1", "gone", "split_1"]}]}}
            """
        let graph = try Fixture.read(text, "old.json", GraphFileOptions(replayScale: 2)).graph

        #expect(graph.name == "old")
        #expect(graph.operations.map(\.name) == ["ID1", "ID2"])
        #expect(graph.operations.map(\.work) == [.wait(.seconds(3)), .wait(.seconds(4))])
        #expect(graph.operations[1].dependencies == [DependencyDescription("ID1")])
        #expect(graph.operations[1].summary == "count_1")
    }

    @Test func `a parent that is no task is left out, and a warning names it`() throws {
        let text = """
            {"workflow": {"specification": {"tasks": [
              {"id": "a", "name": "same", "parents": []},
              {"id": "b", "name": "same", "parents": null},
              {"id": "c", "parents": ["a", "gone", "same"]}]}}}
            """
        let file = try Fixture.read(text, "w.json", GraphFileOptions(replayScale: 1))

        #expect(file.graph.operations[2].dependencies == [DependencyDescription("a")])
        #expect(
            file.warnings.map(\.description) == [
                "w.json:4:10: task “c” does not wait for its parent “gone”: the workflow has no"
                    + " task of that id, and no single one of that name",
                "w.json:4:10: task “c” does not wait for its parent “same”: the workflow has no"
                    + " task of that id, and no single one of that name",
            ]
        )
    }

    @Test func `of very many parents that are no tasks the first ten are named`() throws {
        let parents = (0..<1_000).map { "\"p\($0)\"" }.joined(separator: ",")
        let text = #"{"workflow": {"tasks": [{"name": "a", "parents": [\#(parents)]}]}}"#
        let file = try Fixture.read(text, "w.json", GraphFileOptions(replayScale: 1))

        #expect(file.warnings.count == 11)
        #expect(file.warnings.last?.description == "w.json: 990 more parents were left out")
    }

    @Test(arguments: ["\"a\"", "{}", "[[\"a\"]]", "[null]"])
    func `parents that are no list of names are refused with their place`(parents: String) {
        let text = #"{"workflow": {"tasks": [{"name": "a", "parents": \#(parents)}]}}"#
        let error = #expect(throws: GraphFileError.self) {
            try Fixture.read(text, "w.json", GraphFileOptions(replayScale: 1))
        }
        #expect(error?.problems.first?.code == .wrongType)
        #expect(error?.description.hasPrefix("w.json:1:50: “parents” must be a list") == true)
    }

    @Test(arguments: [-1, Double.nan, .infinity])
    func `a scale that is no number of at least 0 is refused`(scale: Double) {
        let text = #"{"workflow": {"tasks": [{"name": "a", "runtime": 1}]}}"#
        let error = #expect(throws: GraphFileError.self) {
            try Fixture.read(text, "w.json", GraphFileOptions(replayScale: scale))
        }
        #expect(error?.problems.first?.thing == "--replay")
    }

    @Test(arguments: ["-1", "1e300", "\"5\""])
    func `a run time that is none is refused with its place`(runtime: String) {
        let text = #"{"workflow": {"tasks": [{"name": "a", "runtime": \#(runtime)}]}}"#
        let error = #expect(throws: GraphFileError.self) {
            try Fixture.read(text, "w.json", GraphFileOptions(replayScale: 1))
        }
        #expect(error?.description.hasPrefix("w.json:1:50: a run time must be") == true)
    }

    @Test func `replay is refused for a graph that has something to run`() {
        let text = "operations: {a: {run: ls}}"
        let error = #expect(throws: GraphFileError.self) {
            try Fixture.read(text, "g.yaml", GraphFileOptions(replayScale: 1))
        }
        #expect(error?.problems.map(\.code) == [.unsupported])
    }
}
