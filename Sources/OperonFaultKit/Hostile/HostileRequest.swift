/// What a hostile operation sends to the socket of its worker: requests that are right in all but
/// one thing, and bytes that are none.
package struct HostileRequest: Sendable {
    package let kind: String
    package let bytes: [UInt8]
    package var conduct: ConnectionConduct
}

/// Draws `HostileRequest`s.
package struct HostileRequests: Sendable {
    package var values: HostileValues
    /// That of the attempt.
    private let token: String
    private let addition: HostileAddition

    package init(values: HostileValues, token: String, queue: String) {
        self.values = values
        self.token = token
        addition = HostileAddition(queue: queue)
    }

    package mutating func next() -> HostileRequest {
        let conduct = drawConduct()
        switch values.below(16) {
        case 0...5:
            let (kind, operations) = addition.bytes(&values)
            return request("add: \(kind)", conduct) { $0.data(2, operations) }
        case 6: return wait(conduct)
        case 7:
            let name = values.text()
            return request("read", conduct) { $0.string(4, name) }
        case 8: return foreignToken(conduct)
        case 9:
            // A length that is not that of what follows.
            let length = Self.length(UInt32(truncatingIfNeeded: values.number()))
            let bytes = length + values.bytes()
            return HostileRequest(kind: "wrong length", bytes: bytes, conduct: conduct)
        case 10:
            let whole = Self.framed(RawMessage { $0.string(1, token) }.bytes)
            return HostileRequest(
                kind: "half a request",
                bytes: Array(whole.prefix(values.below(whole.count))),
                conduct: .staysMute
            )
        case 11:
            return HostileRequest(kind: "nothing at all", bytes: [], conduct: .staysMute)
        case 12:
            let bytes = values.bytes()
            return HostileRequest(kind: "random", bytes: bytes, conduct: conduct)
        case 13:
            let sound = request("", .reads) { $0.string(4, "o0-0") }
            let bytes = values.damaged(sound.bytes)
            return HostileRequest(kind: "damaged", bytes: bytes, conduct: conduct)
        case 14:
            let sound = request("", .reads) { $0.string(4, "o0-0") }
            return HostileRequest(
                kind: "two requests on one connection",
                bytes: sound.bytes + sound.bytes,
                conduct: conduct
            )
        default:
            let deep = HostileValues.deepGroups(values.pick([101, 10_000, 100_000]))
            let field = values.number() | 7
            return request("unknown fields", conduct) { message in
                message.integer(field >> 35, 1)
                message.append(deep)
            }
        }
    }

    private mutating func wait(_ conduct: ConnectionConduct) -> HostileRequest {
        if values.isRare(20) {
            let count = values.pick([10_000, 10_001, 300_000])
            let name = values.pick(["", "a", "child0"])
            return request("wait: many names", conduct) { message in
                message.message(3) { names in
                    for _ in 0..<count { names.string(1, name) }
                }
            }
        }
        let names = (0..<values.below(4)).map { _ in values.text() }
        return request("wait", conduct) { message in
            message.message(3) { list in
                for name in names { list.string(1, name) }
            }
        }
    }

    private mutating func foreignToken(_ conduct: ConnectionConduct) -> HostileRequest {
        let tokens = [
            "", "0", String(token.dropLast()), token + "0", String(token.reversed()), values.text(),
            String(repeating: "t", count: values.byteCount()),
        ]
        let message = RawMessage { [token = values.pick(tokens)] message in
            message.string(1, token)
            message.string(4, "o0-0")
        }
        return HostileRequest(
            kind: "foreign token",
            bytes: Self.framed(message.bytes),
            conduct: conduct
        )
    }

    private mutating func drawConduct() -> ConnectionConduct {
        switch values.below(10) {
        case 0: .sendsSlowly
        case 1: .staysMute
        case 2: .hangsUp
        default: .reads
        }
    }

    // MARK: - Bytes

    private func request(
        _ kind: String,
        _ conduct: ConnectionConduct,
        _ what: (inout RawMessage) -> Void
    ) -> HostileRequest {
        let message = RawMessage { message in
            message.string(1, token)
            what(&message)
        }
        return HostileRequest(kind: kind, bytes: Self.framed(message.bytes), conduct: conduct)
    }

    private static func framed(_ message: [UInt8]) -> [UInt8] {
        length(UInt32(truncatingIfNeeded: message.count)) + message
    }

    private static func length(_ count: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: count >> (8 * $0)) }
    }
}
