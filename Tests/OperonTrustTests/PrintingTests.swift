import OperonModel
import OperonSystem
import Testing

@testable import OperonTrust

/// What a log, a failed test or a report of a crash would show of keys and tokens.
struct PrintingTests {
    /// All that Swift prints of a value.
    private func printed(_ value: Any) -> String {
        var dumped = ""
        dump(value, to: &dumped)
        return "\(value)\n\(String(reflecting: value))\n\(dumped)"
    }

    /// Whether bytes stand in a text as numbers, in brackets or on lines of their own.
    private func has(_ text: String, _ bytes: [UInt8]) -> Bool {
        let numbers = text.split { !$0.isNumber }.map { Int($0) ?? -1 }
        return numbers.firstRange(of: bytes.prefix(16).map(Int.init)) != nil
    }

    @Test("the search finds bytes that are printed")
    func search() throws {
        let keys = CoordinatorKeys()
        #expect(has(printed(keys), keys.publicKey))
        #expect(has(printed(keys.privateKey), keys.privateKey))
    }

    @Test("nothing that prints keys and tokens shows what is secret of them")
    func secrets() throws {
        let keys = CoordinatorKeys().rotated()
        let token = try JoinToken(WorkerGrant(queues: ["books"]), by: keys)
        let identity = WorkerTrust(token)
        for value: Any in [keys, token, identity, Credentials.Proof.token(token)] {
            let text = printed(value)
            let isMarked = text.contains("***")
            #expect(isMarked)
            for secret in [keys.privateKey, token.signature, identity.privateKey] {
                let isShown = has(text, secret)
                #expect(!isShown)
            }
        }
        #expect(printed(token).contains("books"))
    }

    @Test("nothing that prints a session shows a key of it, from the knock to its end")
    func sessions() throws {
        let keys = CoordinatorKeys()
        let token = try JoinToken(WorkerGrant(), by: keys)
        let drawn = { (byte: UInt8) in
            { @Sendable (count: Int) in [UInt8](repeating: byte, count: count) }
        }
        var pair = try Pair(keys: keys, token: token)
        pair.coordinator = CoordinatorSeals(
            keys: keys,
            reign: Pair.reign,
            epoch: Epoch(rawValue: 1),
            random: drawn(0xA7)
        )
        pair.worker = WorkerSeals(pair.identity, random: drawn(0xB3))
        pair.worker.connected(1)
        let drawnBytes = [UInt8](repeating: 0xA7, count: 32)
        let secrets = [
            keys.privateKey, token.signature, pair.identity.privateKey, drawnBytes,
            drawnBytes.map { _ in 0xB3 },
        ]
        func check() {
            for text in [printed(pair.coordinator), printed(pair.worker)] {
                let shown = secrets.indices.filter { has(text, secrets[$0]) }
                #expect(shown == [])
            }
        }
        check()
        let knock = try pair.say("hello")
        check()
        let offer = try pair.coordinator.receive(knock, at: Pair.start).frame()
        check()
        guard case .sendAgain(let body)? = try pair.worker.receive(offer).first else {
            throw Missing()
        }
        check()
        let hello = try pair.worker.seal(body, lane: 0).unwrapped()
        #expect(try pair.coordinator.receive(hello, at: Pair.start).messages == ["hello"])
        check()
    }
}
