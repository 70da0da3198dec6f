import Logging
import Operon
import ServiceLifecycle
import Testing
import UnixSignals

// snippet: cancellation
struct Sum: Operation {
    var numbers: [Int]

    func main(_ context: OperationContext) async throws -> Int {
        var sum = 0
        for (index, number) in numbers.enumerated() {
            try context.checkCancellation()
            sum += number
            context.report(progress: Double(index + 1) / Double(numbers.count))
        }
        return sum
    }
}
// end

// snippet: version
struct Greet: Operation {
    static let version = 2
    static let supportedVersions = 1...2

    var name: String
    /// New in the second form.
    var language: String

    init(name: String, language: String) {
        self.name = name
        self.language = language
    }

    private enum Keys: CodingKey { case name, language }

    init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Keys.self)
        name = try fields.decode(String.self, forKey: .name)
        let isOld = decoder.userInfo[.operationVersion] as? Int == 1
        language = isOld ? "en" : try fields.decode(String.self, forKey: .language)
    }

    func main(_ context: OperationContext) async throws -> String { "\(language): \(name)" }
}
// end

// snippet: resources
struct Train: Operation {
    var data: String

    var options: OperationOptions {
        OperationOptions(
            resources: [.cpus(2), .memory(bytes: 8 << 30), .gpus(1)],
            workers: [.equals("region", "eu")]
        )
    }

    func main(_ context: OperationContext) async throws -> Int {
        context.log("uses graphics processors \(context.gpus)")
        return data.count
    }
}
// end

// snippet: children
struct Split: Operation {
    var files: [String]

    func main(_ context: OperationContext) async throws -> Int {
        var names: [String] = []
        for file in files {
            try await context.addOperation(Resize(file: file, width: 200), named: "small \(file)")
            names.append("small \(file)")
        }
        let outcomes = try await context.wait(for: names)
        return outcomes.count { $0 == .succeeded }
    }
}
// end

// snippet: condition
struct HasInput: Condition {
    var file: String

    func evaluate(_ context: OperationContext) async throws -> ConditionResult {
        file.isEmpty ? .failed : .satisfied
    }
}

struct Check: Operation {
    var file: String
    var conditions: [any Condition] { [HasInput(file: file), Not(HasInput(file: ""))] }

    func main(_ context: OperationContext) async throws -> Bool { true }
}
// end

@Suite struct WritingAWorker {
    /// Compiled, and not run: it would serve until it is stopped.
    func serves() async throws {
        // snippet: service
        let worker = Worker(slots: 4, handlesSignals: false, .on(Resize.self), .on(Publish.self))
        let group = ServiceGroup(
            services: [worker],
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: Logger(label: "images")
        )
        try await group.run()
        // end
    }

    @Test func named() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        // snippet: block
        let length = OperationKind.block("length", of: String.self) { text, _ in text.count }
        // end
        // snippet: register
        try await cluster.register(length, .on(Sum.self))
        // end
        // snippet: by-name
        let counted = try await queue.addOperation("length", "seven letters")
        print(try await counted.value(as: Int.self))
        // end
        #expect(try await counted.value(as: Int.self) == 13)
        await cluster.close()
    }

    @Test func theOldForm() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        try await cluster.register(.on(Greet.self))
        let queue = OperationQueue(cluster: cluster)
        let old = try NamedOperationHandle(kind: "Greet", input: ["name": "Ada"], version: 1)
        try await queue.addOperation(old)
        let new = try await queue.addOperation(Greet(name: "Ada", language: "fr"))
        #expect(try await old.value(as: String.self) == "en: Ada")
        #expect(try await new.value == "fr: Ada")
        await cluster.close()
    }

    @Test func resources() async throws {
        // snippet: offer
        let worker = Worker(
            resources: [.gpus(2), ResourceAmount(name: "licences", amount: 3)],
            labels: ["region": "eu"],
            .on(Train.self)
        )
        // end
        _ = worker
        let cluster = Cluster.inProcess(
            resources: [.cpus(2), .memory(bytes: 8 << 30), .gpus(1)],
            labels: ["region": "eu"]
        )
        let queue = OperationQueue(cluster: cluster)
        #expect(try await queue.addOperation(Train(data: "abc")).value == 3)
        await cluster.close()
    }

    @Test func children() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        let split = try await queue.addOperation(Split(files: ["a.png", "b.png"]))
        #expect(try await split.value == 2)
        await cluster.close()
    }

    @Test func conditions() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        let good = try await queue.addOperation(Check(file: "a"))
        let bad = try await queue.addOperation(Check(file: ""))
        #expect(try await good.value)
        #expect(try await bad.finalOutcome() == .failed(.conditionFailed(name: "HasInput")))
        await cluster.close()
    }
}
