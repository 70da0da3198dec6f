import Foundation
import OperonModel
import Testing

@testable import OperonTrust

struct FileTests {
    private func folder(_ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-trust-\(UUID().uuidString)").path
        // benign: the system clears its temporary directory.
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try body(folder)
    }

    private func mode(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.posixPermissions] as? Int)
    }

    @Test("keys are made once, for their owner alone, and read as they were written")
    func keys() throws {
        try folder { folder in
            let directory = TrustDirectory(path: folder + "/a/b")
            #expect(try directory.keys() == nil)
            let keys = try directory.create().unwrapped()
            #expect(try directory.create() == nil)
            let read = try directory.keys().unwrapped()
            #expect(read.publicKey == keys.publicKey && read.links == keys.links)
            #expect(try mode(directory.path) == 0o700)
            #expect(try mode(directory.path + "/coordinator.keys") == 0o600)
            #expect(try mode(directory.joinFile) == 0o600)
            let token = try JoinToken.read(directory.path)
            #expect(token.issuer == keys.publicKey)
            #expect(try JoinToken(text: token.text) == token)
        }
    }

    @Test("keys that are replaced lead back to those before them")
    func rotation() throws {
        try folder { folder in
            let directory = TrustDirectory(path: folder)
            #expect(throws: TrustError.self) { try directory.rotate() }
            let keys = try directory.create().unwrapped()
            let stamp = directory.stamp
            _ = try directory.rotate()
            let latest = try directory.rotate()
            #expect(directory.stamp != stamp)
            let read = try directory.keys().unwrapped()
            #expect(read.publicKey == latest.publicKey)
            #expect(read.links.first?.old == keys.publicKey)
            #expect(try JoinToken.read(folder).issuer == latest.publicKey)
        }
    }

    @Test("what is revoked is kept, each once, and other text is refused")
    func revoked() throws {
        try folder { folder in
            let directory = TrustDirectory(path: folder)
            _ = try directory.create()
            let grant = String(repeating: "0f", count: WorkerGrant.idBytes)
            let key = String(repeating: "a1", count: 32)
            #expect(try directory.revoke(grant))
            #expect(try directory.revoke(key))
            #expect(try !directory.revoke(grant))
            #expect(try directory.revoked().map(Hex.text).sorted() == [grant, key])
            for text in ["", "0f", grant + "0", "zz" + grant.dropFirst(2), "../" + grant] {
                #expect(throws: TrustError.self) { try directory.revoke(text) }
            }
            try "nonsense\n".write(
                toFile: folder + "/revoked",
                atomically: false,
                encoding: .utf8
            )
            let error = #expect(throws: TrustError.self) { try directory.revoked() }
            #expect(error?.message.contains("/revoked, line 1: ") == true)
        }
    }

    @Test("a file of keys that is not whole is refused with its line")
    func brokenKeys() throws {
        let keys = CoordinatorKeys().rotated()
        #expect(try CoordinatorKeys(text: keys.text, path: "f").publicKey == keys.publicKey)
        let lines = keys.text.split(separator: "\n").map(String.init)
        let link = lines[1]
        let key = lines[2]
        let changed = String(link.dropLast()) + (link.hasSuffix("0") ? "1" : "0")
        for (text, why) in [
            ("", "f has no line “key”."), (link, "f has no line “key”."),
            (key + "\n" + key, "f, line 2: there is a key above already."),
            ("key 00", "f, line 1: a key has 64 hexadecimal digits."),
            ("lock 00", "f, line 1: it should begin with “key” or “link”."),
            (changed + "\n" + key, "f, line 1: the signature is not that of the key before."),
            (link + "\n" + CoordinatorKeys().text, "f: the last link does not lead to the key."),
        ] {
            let error = #expect(throws: TrustError.self) {
                try CoordinatorKeys(text: text, path: "f")
            }
            #expect(error?.message == why)
        }
    }

    @Test("files that others can read are refused")
    func rights() throws {
        try folder { folder in
            let directory = TrustDirectory(path: folder)
            _ = try directory.create()
            for file in ["coordinator.keys", "join"] {
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o644],
                    ofItemAtPath: "\(folder)/\(file)"
                )
            }
            let error = #expect(throws: TrustError.self) { try directory.keys() }
            #expect(error?.message.contains("chmod 600") == true)
            #expect(throws: TrustError.self) { try JoinToken.read(folder) }
        }
    }

    @Test("text that is no token is refused, and not repeated")
    func tokens() throws {
        let token = JoinToken(try WorkerGrant(queues: ["a"]), by: CoordinatorKeys())
        let text = token.text
        #expect(try JoinToken(text: text) == token)
        for wrong in ["", "operon-join-1.", String(text.dropLast(4)), text + "AAAA", "x" + text] {
            let error = #expect(throws: TrustError.self) { try JoinToken(text: wrong) }
            #expect(error?.message.contains("operon trust token") == true)
            #expect(error?.message.contains(text.suffix(20)) == false)
        }
        #expect(throws: TrustError.self) { try WorkerGrant(queues: [""]) }
        #expect(throws: TrustError.self) {
            try WorkerGrant(kinds: (0...WorkerGrant.namesMax).map { "k\($0)" })
        }
    }

    @Test("a worker with a state directory stays one after its token has expired")
    func membership() throws {
        try folder { folder in
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true
            )
            let keys = CoordinatorKeys()
            let end = Pair.start + .seconds(1)
            let token = JoinToken(try WorkerGrant(expiresAt: end), by: keys)
            let store = WorkerTrustStore(stateDirectory: folder)
            let first = try store.identity(token)
            try store.begin(first, token)
            #expect(try mode(folder + "/trust") == 0o600)
            var pair = try Pair(keys: keys, identity: first)
            let (_, told) = try pair.join()
            guard case .accepted(let membership)? = told.first else { throw Missing() }
            try store.keep(membership)

            let second = try store.identity(token)
            #expect(second.publicKey == first.publicKey)
            #expect(second.incarnation != first.incarnation)
            try store.begin(second, token)
            var later = try Pair(keys: keys.rotated(), identity: second)
            let knock = try later.say("hello")
            let late = end + .seconds(3_600)
            let offer = try later.coordinator.receive(knock, at: late).frame()
            _ = try later.worker.receive(offer)
            let hello = try later.say("hello")
            let heard = try later.coordinator.receive(hello, at: late)
            #expect(heard.messages == ["hello"])
            guard case .message(_, let peer)? = heard.last else { throw Missing() }
            #expect(peer.predecessor == first.incarnation)

            // With a token of another coordinator it starts anew.
            let other = CoordinatorKeys()
            let third = try store.identity(JoinToken(try WorkerGrant(), by: other))
            var elsewhere = try Pair(keys: other, identity: third)
            #expect(try elsewhere.join().0.messages == ["hello"])
        }
    }
}
