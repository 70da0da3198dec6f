import OperonModel
import OperonWire
import Testing

@Suite struct RoundTripTests {
    @Test(arguments: 0..<10)
    func `a thousand random messages of a seed come back as they were`(seed: UInt64) throws {
        var generator = MessageGenerator(seed: seed)
        for index in 0..<1_000 {
            let message = generator.message()

            let bytes = try message.encoded()
            let decoded = try message.decodingSameSide(bytes)

            try #require(decoded == message, "seed \(seed), message \(index)")
            try #require(try decoded.encoded() == bytes, "seed \(seed), message \(index)")
        }
    }

    @Test func `the order in which an environment was filled does not change the bytes`() throws {
        let names = (0..<50).map { "NAME_\($0)" }
        var forward: [String: String] = [:]
        for name in names { forward[name] = "v" }
        var backward: [String: String] = [:]
        backward.reserveCapacity(1_000)
        for name in names.reversed() { backward[name] = "v" }

        let bytes = try [forward, backward].map { environment in
            var operation = Samples.operation
            operation.work = .command(
                CommandDescription(arguments: ["true"], environment: environment)
            )
            return try Message.from(
                coordinator: .dispatch(Dispatch(acknowledged: 0, operations: [operation]))
            ).encoded()
        }

        #expect(bytes[0] == bytes[1])
    }

    @Test func `a duration is cut to whole nanoseconds`() throws {
        var operation = Samples.operation
        operation.work = .wait(Duration(secondsComponent: 1, attosecondsComponent: 1_999_999_999))
        let message = CoordinatorMessage.dispatch(
            Dispatch(acknowledged: 0, operations: [operation])
        )

        let bytes = try Message.from(coordinator: message).encoded()
        let decoded = try Wire.decodeCoordinator(bytes)

        operation.work = .wait(.seconds(1) + .nanoseconds(1))
        #expect(
            decoded.body == .dispatch(Dispatch(acknowledged: 0, operations: [operation]))
        )
    }

    @Test func `a dispatch of one small operation takes less than a hundred bytes`() throws {
        let message = Message.from(
            coordinator: .dispatch(
                Dispatch(acknowledged: 1_000, operations: [Samples.operation])
            )
        )

        #expect(try message.encoded().count < 100)
    }

    @Test(arguments: [
        OperationSocketFormat.Request.What.add([1, 2]), .wait(["a", "g/b"]), .read("a"),
    ])
    func `a question from inside an operation survives`(
        _ what: OperationSocketFormat.Request.What
    ) throws {
        let request = OperationSocketFormat.Request(token: "t", what: what)
        let bytes = try OperationSocketFormat.encode(request)
        let body = Array(bytes.dropFirst(OperationSocketFormat.lengthBytes))
        #expect(OperationSocketFormat.length(bytes[...]) == body.count)
        #expect(try OperationSocketFormat.decodeRequest(body) == request)
    }

    @Test(arguments: [
        OperationSocketFormat.Answer.added(3), .awaited([.failed, .skipped]), .ended, .unknownToken,
        .refused(.graphClosed(name: "g")), .unreadable("no"), .read(nil),
        .read(Payload(contentType: "text/plain", bytes: [1])), .read(.empty),
    ])
    func `an answer to what is inside an operation survives`(
        _ answer: OperationSocketFormat.Answer
    ) throws {
        let bytes = try OperationSocketFormat.encode(answer)
        let body = Array(bytes.dropFirst(OperationSocketFormat.lengthBytes))
        #expect(try OperationSocketFormat.decodeAnswer(body) == answer)
    }
}
