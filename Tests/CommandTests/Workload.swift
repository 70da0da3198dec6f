import Foundation
import Testing

/// A recorded workflow of the fixtures, read by other code than the one that is tested.
struct Workload: CustomTestStringConvertible, Sendable {
    let name: String
    let path: String
    /// By task, in the order of the file; what is listed twice or is no task is left out.
    let dependencies: [String: [String]]
    /// Seconds, by task.
    let runtimes: [String: Double]

    static let names = [
        "1000genome-chameleon-12ch-250k-001", "bwa-chameleon-medium-001",
        "montage-chameleon-2mass-05d-001", "ninja-curl-7.88.1", "rnaseq-dirt02-001",
    ]

    var testDescription: String { name }

    private struct File: Decodable {
        struct Workflow: Decodable {
            let specification: Specification
            let execution: Execution
        }
        struct Specification: Decodable { let tasks: [Task] }
        struct Task: Decodable {
            let id: String
            let parents: [String]
        }
        struct Execution: Decodable { let tasks: [Run] }
        struct Run: Decodable {
            let id: String
            let runtimeInSeconds: Double?
        }
        let workflow: Workflow
    }

    init(_ name: String) throws {
        let tests = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent()
        let url = tests.appendingPathComponent("OperonGraphFileTests/Fixtures/\(name).json")
        let file = try JSONDecoder().decode(File.self, from: Data(contentsOf: url))
        let tasks = file.workflow.specification.tasks
        let known = Set(tasks.map(\.id))
        var dependencies: [String: [String]] = [:]
        for task in tasks {
            dependencies[task.id] = Set(task.parents).intersection(known).sorted()
        }
        var runtimes: [String: Double] = [:]
        for run in file.workflow.execution.tasks { runtimes[run.id] = run.runtimeInSeconds ?? 0 }
        self.name = name
        path = url.path
        self.dependencies = dependencies
        self.runtimes = runtimes
    }

    private var work: Double { dependencies.keys.reduce(0) { $0 + (runtimes[$1] ?? 0) } }

    private var criticalPath: Double {
        var paths: [String: Double] = [:]
        func path(_ task: String) -> Double {
            if let known = paths[task] { return known }
            let before = (dependencies[task] ?? []).map(path).max() ?? 0
            let length = before + (runtimes[task] ?? 0)
            paths[task] = length
            return length
        }
        return dependencies.keys.map(path).max() ?? 0
    }

    /// The scale at which no schedule on these slots is shorter than `bound` seconds.
    func scale(bound: Double, slots: Int) -> Double {
        bound / max(criticalPath, work / Double(slots))
    }
}
