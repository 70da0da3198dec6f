import OperonCore
import OperonModel
import Testing

@testable import OperonRuntime

/// Which outputs travel with an operation, and which are fetched.
@Suite struct GraphContentsTests {
    /// Dependencies with outputs of so many bytes each, and an operation that needs them all.
    private func contents(_ sizes: [Int], limits: Limits = Limits()) -> GraphContents {
        var operations = sizes.indices.map {
            OperationDescription(name: "o\($0)", work: .nothing)
        }
        var join = OperationDescription(
            name: "join",
            work: .command(CommandDescription(arguments: ["true"]))
        )
        join.dependencies = sizes.indices.map { DependencyDescription("o\($0)") }
        operations.append(join)
        let graph = GraphDescription(name: "g", operations: operations)
        var contents = GraphContents(graph, limits: limits)
        for (index, size) in sizes.enumerated() {
            contents.keep(output(index, size), of: UInt32(index))
        }
        return contents
    }

    private func output(_ index: Int, _ size: Int) -> Payload {
        Payload(
            contentType: index == 0 ? "text/plain" : Payload.json,
            bytes: (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ index) }
        )
    }

    private func inputs(
        _ contents: inout GraphContents,
        of index: Int,
        limits: Limits = Limits()
    ) -> [NamedInput] {
        var catalog = GraphCatalog(limits: limits, hasStore: true)
        catalog.append("g", contents, GraphCatalog.Submission())
        defer { contents = catalog[GraphID(rawValue: 0)] }
        return catalog.inputs(of: id(index))
    }

    private func id(_ index: Int) -> OperationID {
        OperationID(graph: GraphID(rawValue: 0), index: UInt32(index))
    }

    @Test func `outputs of 64 KiB in all travel with it, one byte more does not`() {
        var exact = contents([60 << 10, 4 << 10])
        #expect(inputs(&exact, of: 2).map(\.output) == [output(0, 60 << 10), output(1, 4 << 10)])
        #expect(inputs(&exact, of: 2).allSatisfy { $0.reference == nil })

        var more = contents([60 << 10, (4 << 10) + 1])
        let inputs = inputs(&more, of: 2)
        #expect(inputs.map(\.output) == [nil, output(1, (4 << 10) + 1)])
        #expect(
            inputs[0].reference
                == OutputReference(
                    operation: id(0),
                    byteCount: 60 << 10,
                    hash: ContentHash(of: output(0, 60 << 10).bytes),
                    contentType: "text/plain"
                )
        )
    }

    @Test func `the largest are fetched, the order stays`() {
        var limits = Limits()
        limits.inlineInputBytes = 1_000
        var contents = contents([300, 900, 0, 700, 500], limits: limits)

        let inputs = inputs(&contents, of: 5, limits: limits)

        #expect(inputs.map(\.name) == ["o0", "o1", "o2", "o3", "o4"])
        #expect(inputs.map { $0.output?.bytes.count } == [300, nil, nil, nil, 500])
        #expect(inputs.map { $0.reference?.byteCount } == [nil, 900, nil, 700, nil])
    }

    @Test func `what is no larger than a reference is never fetched`() {
        var limits = Limits()
        limits.inlineInputBytes = 100
        var contents = contents([64, 64, 65], limits: limits)

        let inputs = inputs(&contents, of: 3, limits: limits)
        #expect(inputs.map { $0.reference?.byteCount } == [nil, nil, 65])
    }

    @Test func `the pieces of an output are all of it, and none is beyond its end`() {
        var limits = Limits()
        limits.chunkBytes = 100
        let contents = contents([250], limits: limits)
        func piece(_ offset: Int, _ length: Int, of index: Int = 0) -> [UInt8]? {
            contents.piece(
                OutputRequest(
                    number: 1,
                    held: HeldAttempt(
                        attempt: AttemptID(epoch: Epoch(rawValue: 1), number: 1),
                        operation: id(1)
                    ),
                    operation: id(index),
                    offset: offset,
                    length: length
                )
            )
        }
        let bytes = output(0, 250).bytes

        #expect(piece(0, 100) == Array(bytes[..<100]))
        #expect(piece(0, 1_000) == Array(bytes[..<100]))
        #expect(piece(200, 100) == Array(bytes[200...]))
        #expect(piece(249, .max) == Array(bytes[249...]))
        #expect(piece(250, 1) == nil)
        #expect(piece(.max, 1) == nil)
        #expect(piece(0, 1, of: 1) == nil)
        #expect(piece(0, 1, of: 9) == nil)
    }

    @Test func `an output is kept until the last that may ask for it has its outcome`() {
        var contents = contents([100])
        contents.finished(0..<1, at: nil)
        #expect(inputs(&contents, of: 1)[0].output?.bytes.count == 100)

        contents.finished(1..<2, at: nil)

        #expect(inputs(&contents, of: 1)[0].output == nil)
    }

    @Test func `a hash is that of every other program`() {
        let text = ContentHash(of: Array("abc".utf8)).bytes.map { byte in
            String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
        }

        #expect(
            text.joined() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        )
    }
}
