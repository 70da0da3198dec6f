/// A client that sends the coordinator's API everything that its tokens let it send.
package enum HostileClient {
    /// - Parameter spared: names that its changes leave alone.
    /// - Throws: `CommandFailure` if the coordinator cannot be reached at the beginning.
    package static func run(
        _ plan: HostilePlan,
        at endpoint: Endpoint,
        tokens: HostileCalls.Tokens,
        spared: [String]
    ) throws -> HostileTally {
        var values = HostileValues(seed: plan.seed)
        values.knownNames = spared
        var calls = HostileCalls(
            values: values,
            document: try document(at: endpoint, tokens),
            tokens: tokens,
            spared: spared
        )
        let swarm = ConnectionSwarm(to: endpoint)
        var tally = HostileTally()
        var pace = HostilePace(plan)
        while !pace.isOver {
            for _ in 0..<pace.due() where swarm.count < plan.connectionsMax {
                var call = calls.next()
                if swarm.muteCount >= plan.muteMax, call.conduct == .staysMute {
                    call.conduct = .hangsUp
                }
                pace.didOne()
                tally.send(call.kind, bytes: call.bytes.count)
                do {
                    try swarm.open(call.kind, call.bytes, call.conduct, patience: call.patience)
                } catch {
                    tally.answer("no connection")
                    break
                }
            }
            for ended in swarm.step(milliseconds: 10) {
                let status = status(of: ended)
                tally.answer(status)
                if status == "201", let graph = identifier(in: ended.answer) { calls.own(graph) }
            }
        }
        return tally
    }

    private static func document(
        at endpoint: Endpoint,
        _ tokens: HostileCalls.Tokens
    ) throws -> HostileDocument {
        let swarm = ConnectionSwarm(to: endpoint, answerBytesMax: 8 << 20)
        let request = HostileCalls.document(tokens)
        try swarm.open("document", request, .reads, patience: .seconds(60))
        while swarm.count > 0 {
            guard let ended = swarm.step(milliseconds: 100).first else { continue }
            let end = Array("\r\n\r\n".utf8)
            guard let place = ended.answer.firstRange(of: end) else { break }
            return try HostileDocument(openAPI: Array(ended.answer[place.upperBound...]))
        }
        throw CommandFailure("the coordinator does not show its document")
    }

    /// The status of an answer, or what came instead of one.
    private static func status(of ended: ConnectionSwarm.Ended) -> String {
        let line = ended.answer.prefix { $0 != UInt8(ascii: "\r") }
        let words = line.split(separator: UInt8(ascii: " "))
        guard words.count > 1, line.starts(with: "HTTP/1.".utf8) else {
            return "no answer, \(ended.reason.rawValue)"
        }
        return String(decoding: words[1], as: UTF8.self)
    }

    /// The first `"id":NUMBER` of an answer.
    private static func identifier(in answer: [UInt8]) -> String? {
        guard let place = answer.firstRange(of: Array("\"id\":".utf8)) else { return nil }
        let digits = answer[place.upperBound...].drop { $0 == 32 }.prefix {
            (48...57).contains($0)
        }
        return digits.isEmpty ? nil : String(decoding: digits, as: UTF8.self)
    }
}
