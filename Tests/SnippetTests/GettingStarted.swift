import Operon
import Testing

// snippet: resize
/// Makes a smaller picture of one. Its properties are all that it needs to know.
struct Resize: Operation {
    var file: String
    var width: Int

    func main(_ context: OperationContext) async throws -> String {
        context.log("\(file) at \(width)")
        // … the work …
        return "\(width)/\(file)"
    }
}
// end

// snippet: publish
/// Returns nothing, and reads what it depends on.
struct Publish: Operation {
    func main(_ context: OperationContext) async throws {
        for dependency in context.dependencies {
            // What returned nothing, a group for example, has no output.
            let file = try context.output(of: dependency, as: String?.self)
            if let file { context.log("published \(file)") }
        }
    }
}
// end

@Suite struct GettingStarted {
    @Test func addsAndWaits() async throws {
        // snippet: add
        let queue = OperationQueue(name: "images", maxConcurrentOperationCount: 4)
        let small = try await queue.addOperation(Resize(file: "a.png", width: 200))
        let large = try await queue.addOperation(Resize(file: "a.png", width: 800))
        let publish = try await queue.addOperation(Publish(), after: [small, large])

        try await publish.value
        print(try await small.value)
        // end
        #expect(try await small.value == "200/a.png")

        // snippet: outcome
        switch try await large.outcome {
        case .succeeded(let file): print("made \(file)")
        case .failed(let error): print("failed: \(error)")
        case .cancelled(let reason): print("cancelled: \(reason)")
        case .skipped(let cause): print("skipped, because of operation \(cause)")
        }
        // end
    }

    @Test func addsAGraph() async throws {
        let queue = OperationQueue()
        // snippet: graph
        let sizes = GroupHandle("sizes") {
            for width in [100, 200, 400] { Resize(file: "a.png", width: width) }
        }
        let publish = OperationHandle(Publish())
        try await queue.addOperations {
            sizes
            publish.after(sizes)
        }
        try await publish.value
        // end
        #expect(try await sizes.finalOutcome() == .succeeded)
    }

    @Test func readsAGraphFile() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        // snippet: graph-file
        let text = """
            name: pictures
            operations:
              small: { operation: Resize, input: { file: a.png, width: 200 } }
              publish: { operation: Publish, dependencies: [small] }
            """
        try await cluster.register(.on(Resize.self), .on(Publish.self))
        let pictures = try await cluster.submit(GraphDescription(text: text))
        print(try await pictures.waitUntilFinished())
        // end
        let publish = try await pictures.operation(named: "publish")
        #expect(try await publish.finalOutcome() == .succeeded)
        await cluster.close()
    }

    /// Compiled, and not run: there is no coordinator of that name.
    func scopes() {
        // snippet: scopes
        let here = Cluster.inProcess
        let kept = Cluster.embedded(store: "operations.db")
        let cluster = Cluster.remote()
        // end
        _ = (here, kept, cluster)
    }
}
