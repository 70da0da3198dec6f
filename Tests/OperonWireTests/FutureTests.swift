import OperonFaultKit
import OperonModel
import OperonWire
import Testing

/// What a program of today does with what one of tomorrow says.
@Suite struct FutureTests {
    private let resync = Message.from(coordinator: .resync)
    private let hello = Message.from(worker: .hello(Samples.hello))

    @Test(arguments: Corpus.cases)
    func `unknown fields at the end of a message are ignored`(_ kept: CorpusCase) throws {
        let future = RawMessage { message in
            message.integer(200, 7)
            message.string(201, "later")
            message.fixed(202, 1)
            message.message(203) { $0.integer(1, 1) }
        }

        let bytes = try kept.message.encoded() + future.bytes

        #expect(try kept.message.decodingSameSide(bytes) == kept.message)
    }

    @Test func `unknown fields inside an operation and its work are ignored`() throws {
        let bytes = RawMessage.coordinator { envelope in
            envelope.message(7) { dispatch in
                dispatch.integer(50, 1)
                dispatch.message(2) { operation in
                    operation.held()
                    operation.integer(2, 1)
                    operation.string(4, "n")
                    operation.string(5, "q")
                    operation.string(15, "key")
                    operation.message(11) { $0.integer(9, 9) }
                }
            }
        }

        let body = try Wire.decodeCoordinator(bytes).body

        guard case .dispatch(let dispatch) = body else {
            Issue.record("not a dispatch: \(body)")
            return
        }
        #expect(dispatch.operations.map(\.work) == [.nothing])
    }

    @Test func `a signature is room for later and is not looked at`() throws {
        let signature = RawMessage { message in
            message.message(16) { signature in
                signature.string(1, "key-1")
                signature.data(2, [1, 2, 3])
            }
        }

        let bytes = try resync.encoded() + signature.bytes

        #expect(try resync.decodingSameSide(bytes) == resync)
    }

    @Test func `a newer minor version is read`() throws {
        let bytes = try resync.encoded() + RawMessage { $0.integer(2, 99) }.bytes

        #expect(try resync.decodingSameSide(bytes) == resync)
    }

    @Test(arguments: [2, 3, UInt64(UInt32.max)])
    func `another major version is refused and named`(major: UInt64) throws {
        let bytes = try resync.encoded() + RawMessage { $0.integer(1, major) }.bytes

        let error = #expect(throws: WireError.self) { try Wire.decodeCoordinator(bytes) }

        #expect(error?.code == .versionUnsupported)
        #expect(error?.message.contains("version \(major).0") == true)
    }

    @Test func `a kind of message that is not known yet is told from a broken one`() {
        let fromCoordinator = RawMessage.coordinator { $0.message(62) }
        let fromWorker = RawMessage.worker { $0.message(63) { $0.integer(1, 1) } }

        #expect(decodingError(fromCoordinator, like: resync) == .unknownMessage)
        #expect(decodingError(fromWorker, like: hello) == .unknownMessage)
    }

    @Test(arguments: Corpus.cases)
    func `a message of the other side is an unknown one`(_ kept: CorpusCase) throws {
        let other: Message =
            switch kept.message {
            case .coordinator: hello
            case .worker: resync
            }
        // What a coordinator sends has no sender; give it one, so that its kind decides.
        let sender = RawMessage { message in
            message.message(6) { sender in
                sender.string(1, "w")
                sender.fixed(2, 1)
                sender.integer(3, 1)
            }
            // And an epoch and a reign to the first word of a worker.
            message.fixed(3, 1)
            message.integer(4, 1)
        }

        let bytes = try kept.message.encoded() + sender.bytes

        #expect(decodingError(bytes, like: other) == .unknownMessage)
    }

    @Test func `work that is not known yet is set aside, and its neighbours are read`() throws {
        let bytes = RawMessage.coordinator { envelope in
            envelope.message(7) { dispatch in
                dispatch.message(2) { operation in
                    operation.held()
                    operation.integer(2, 1)
                    operation.string(4, "n")
                    operation.string(5, "q")
                    operation.message(33)
                }
                dispatch.message(2) { operation in
                    operation.held()
                    operation.integer(2, 1)
                    operation.string(4, "n")
                    operation.string(5, "q")
                    operation.message(11)
                }
            }
        }

        let body = try Wire.decodeCoordinator(bytes).body

        guard case .dispatch(let dispatch) = body else {
            Issue.record("not a dispatch: \(body)")
            return
        }
        let attempt = AttemptID(epoch: Epoch(rawValue: 1), number: 5)
        #expect(dispatch.operations.map(\.held.attempt) == [attempt])
        #expect(dispatch.unreadable.map(\.held.attempt) == [attempt])
        #expect(dispatch.unreadable.first?.why.contains("operation.work") == true)
    }

    @Test func `a failure for a reason that is not known yet is still a failure`() throws {
        let bytes = RawMessage.worker { envelope in
            envelope.message(9) { batch in
                batch.integer(1, 1)
                batch.message(3) { event in
                    event.held()
                    event.message(3) { result in
                        result.message(2) { error in error.string(50, "gpu on fire") }
                    }
                }
            }
        }

        let body = try Wire.decodeWorker(bytes).body

        guard case .events(let batch) = body, case .finished(_, let result)? = batch.events.first,
            case .failed(.undecodable(let why)) = result.end
        else {
            Issue.record("not a failure: \(body)")
            return
        }
        #expect(why.contains("newer version"))
    }
}
