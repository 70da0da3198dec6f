import OperonCore
import OperonGraphFile
import OperonModel
import OperonWire

extension FuzzTarget {
    static let yaml = FuzzTarget("graph-yaml", bytesMax: 4_096) { try readGraph($0, .yaml) }
    static let json = FuzzTarget("graph-json", bytesMax: 4_096) { try readGraph($0, .json) }
    static let jsonLines = FuzzTarget("graph-jsonl", bytesMax: 4_096) { bytes in
        try readGraph(bytes, .jsonLines)
    }

    /// Trigger files in both forms; the first byte chooses.
    static let trigger = FuzzTarget("trigger", bytesMax: 4_096) { bytes in
        var input = InputReader(bytes)
        let type = input.byte() & 1 == 0 ? "application/json" : "application/yaml"
        let codec = GraphFileCodec()
        guard let trigger = try? codec.decodeTrigger(input.remainder(), contentType: type) else {
            return
        }
        let written = codec.encode(trigger)
        let again = try read("a trigger that was written") {
            try codec.decodeTrigger(written, contentType: GraphFileCodec.triggerContentType)
        }
        try require(again == trigger, "a trigger that was written is read as another one")
    }

    /// A few repetitions are enough to reach all code, and many would only take time.
    private static var options: GraphFileOptions {
        var limits = Limits()
        limits.operationsPerGraph = 2_000
        limits.edgesPerGraph = 20_000
        limits.yamlAliasExpansion = 20_000
        var options = GraphFileOptions(limits: limits, name: "fuzz")
        options.expandedBytesMax = 256 << 10
        return options
    }

    /// A graph that is accepted can be written; what is written is read as the same graph. The same
    /// holds for lines, and for the form in which it is stored.
    private static func readGraph(_ bytes: [UInt8], _ format: GraphFileFormat) throws {
        let file: GraphFile
        do throws(GraphFileError) {
            file = try GraphFile.read(bytes: bytes, file: "fuzz", format: format, options: options)
        } catch {
            return try require(!error.problems.isEmpty, "a file is refused without a problem")
        }
        let graph = file.graph
        do throws(Refusal) {
            _ = try CompiledGraph.compile(graph)
        } catch {
            // What only the whole graph shows, which has a place in the file.
            return try require(
                !file.located(error).problems.isEmpty,
                "a refusal has no place: \(error)"
            )
        }
        let text = try read("a graph that was accepted") { try GraphFile.encodeJSON(graph) }
        let again = try read("a graph that was written") {
            try GraphFile.read(bytes: text, file: "fuzz", format: .json)
        }
        try require(again.graph == graph, "a graph that was written is read as another one")
        let lines = try read("a graph that was accepted") {
            try GraphFileCodec().encode(graph).flatMap { $0 }
        }
        let fromLines = try read("lines that were written") {
            try GraphFile.read(bytes: lines, file: "fuzz", format: .jsonLines)
        }
        try require(fromLines.graph == graph, "lines that were written are read as another graph")
        try checkStored(graph)
    }

    private static func checkStored(_ graph: GraphDescription) throws {
        let bytes = try read("a graph that was accepted") {
            try StoreFormat.encode(graph, failFast: false)
        }
        let stored = try read("a graph that was stored") { try StoreFormat.decodeGraph(bytes) }
        try require(stored.graph == graph, "a graph that was stored is another one")
    }

    /// - Throws: `BrokenRule` if what must succeed does not.
    private static func read<Value>(_ what: String, _ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch {
            throw BrokenRule("\(what) is refused: \(error)")
        }
    }
}
