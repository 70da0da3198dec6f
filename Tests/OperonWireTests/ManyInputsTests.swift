import OperonFaultKit
import OperonModel
import OperonWire
import Testing

/// Operations with very many dependencies.
@Suite struct ManyInputsTests {
    private func dispatch(_ inputs: [NamedInput]) -> Message {
        var operation = Samples.operation
        operation.inputs = inputs
        return .from(coordinator: .dispatch(Dispatch(acknowledged: 0, operations: [operation])))
    }

    @Test func `300,000 dependencies that left nothing fit one message, in their order`() throws {
        var inputs = (0..<300_000).map { NamedInput(name: "w\($0)", output: nil) }
        inputs[0].output = Payload(bytes: [49])
        inputs[7].isDropped = true
        inputs[8].output = Payload(bytes: [50])
        inputs[299_999].output = Payload(bytes: [51])
        let message = dispatch(inputs)

        #expect(try message.decodingSameSide(message.encoded()) == message)
    }

    @Test(arguments: [1_024, 1_025])
    func `any number of inputs is read as it was written`(count: Int) throws {
        for stride in [1, 2, 7, 5_000] {
            let inputs = (0..<count).map { place in
                NamedInput(
                    name: "dependency-\(place)",
                    output: place.isMultiple(of: stride) ? Payload(bytes: [55]) : nil
                )
            }
            let message = dispatch(inputs)

            #expect(try message.decodingSameSide(message.encoded()) == message)
        }
    }

    @Test func `a list of names that is damaged spoils its operation and no other`() throws {
        // One entry is to stand before a name, and there is none; a name that is longer than the
        // list; a name without bytes; a number that does not end.
        let lists: [[UInt8]] = [[1, 1, 97], [0, 9, 97], [0, 0], [0x80, 0x80], [0]]
        for list in lists {
            let bytes = RawMessage.coordinator { envelope in
                envelope.message(7) { dispatch in
                    dispatch.message(2) { operation in
                        operation.held()
                        operation.integer(2, 1)
                        operation.string(4, "n")
                        operation.string(5, "q")
                        operation.message(11) { _ in }
                        operation.data(29, list)
                    }
                }
            }
            guard case .dispatch(let dispatch) = try Wire.decodeCoordinator(bytes).body else {
                Issue.record("no dispatch")
                continue
            }
            #expect(dispatch.operations.isEmpty)
            #expect(dispatch.unreadable.count == 1)
        }
    }

    @Test func `what its receiver would refuse for its many parts is not sent`() {
        // Empty arguments, which take next to no bytes.
        var operation = Samples.operation
        operation.work = .command(
            CommandDescription(arguments: Array(repeating: "", count: 300_000))
        )
        let message = Message.from(
            coordinator: .dispatch(Dispatch(acknowledged: 0, operations: [operation]))
        )

        let error = #expect(throws: WireError.self) { try message.encoded() }
        #expect(error?.code == .tooLarge)
    }
}
