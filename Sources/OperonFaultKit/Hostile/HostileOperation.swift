import Foundation
import Glibc

/// A running operation that sends its worker's socket everything that it can think of.
package enum HostileOperation {
    /// - Parameter environment: that of the process of an operation.
    /// - Throws: `CommandFailure` if it is none.
    package static func run(
        _ plan: HostilePlan,
        environment: [String: String],
        queue: String,
        names: [String]
    ) throws -> HostileTally {
        guard let path = environment["OPERON_SOCKET"], let token = environment["OPERON_TOKEN"]
        else { throw CommandFailure("OPERON_SOCKET and OPERON_TOKEN are not set: no operation") }
        var values = HostileValues(seed: plan.seed)
        values.knownNames = names
        var requests = HostileRequests(values: values, token: token, queue: queue)
        let swarm = ConnectionSwarm(to: .local(path))
        var tally = HostileTally()
        var pace = HostilePace(plan)
        while !pace.isOver {
            for _ in 0..<pace.due() where swarm.count < plan.connectionsMax {
                var request = requests.next()
                if swarm.muteCount >= plan.muteMax, request.conduct == .staysMute {
                    request.conduct = .hangsUp
                }
                pace.didOne()
                tally.send(request.kind, bytes: request.bytes.count)
                do {
                    let patience = Duration.seconds(request.conduct == .staysMute ? 20 : 3)
                    try swarm.open(
                        request.kind,
                        request.bytes,
                        request.conduct,
                        patience: patience
                    )
                } catch {
                    tally.answer("no connection")
                    break
                }
            }
            for ended in swarm.step(milliseconds: 10) { tally.answer(answer(of: ended)) }
            // What it prints is kept, and shown to people.
            if requests.values.isRare(50) {
                FileHandle.standardError.write(Data(requests.values.bytes()))
            }
        }
        return tally
    }

    /// Which field of `OperationSocketAnswer` came: its number is in the first byte after the
    /// length.
    private static func answer(of ended: ConnectionSwarm.Ended) -> String {
        guard ended.answer.count > 4 else { return "no answer, \(ended.reason.rawValue)" }
        let names = [
            1: "added", 2: "refused", 3: "ended", 4: "unknown token", 5: "unreadable",
            6: "awaited", 7: "output",
        ]
        return names[Int(ended.answer[4] >> 3)] ?? "an answer of no kind"
    }
}
