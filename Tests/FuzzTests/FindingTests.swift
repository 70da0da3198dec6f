import FuzzTargets
import OperonModel
import Testing

/// An input that fuzzing found to break a rule, until the cause was mended.
struct Finding: Sendable, CustomTestStringConvertible {
    let target: String
    /// What was wrong.
    let name: String
    let base64: String

    init(_ target: String, _ name: String, _ base64: String) {
        self.target = target
        self.name = name
        self.base64 = base64
    }

    var testDescription: String { "\(target): \(name)" }

    static let all: [Finding] = [
        Finding(
            "amqp",
            "a connection that had failed heard what came in the same piece",
            "ABYBAAEAAAAHADwAHgF3Ac4BAAEAAAAOABQAKAGUA3doeQA8ACjO"
        ),
        Finding(
            "amqp",
            "the properties of a header of another class were read from memory behind them",
            "AAIBAAEAAAAsADwAPARsb2NrAAAAAAAAAAcADW9wZXJvbi5ldmVudHMLY29vcmRp"
                + "bmF0b3LOAgABAAAAHABaAAAAAP////////9cDW9wZWzOAwBhc2tzLjHO"
        ),
        Finding(
            "text",
            "the address “unix” was taken, and written as that of a socket",
            "CXVuaXg="
        ),
        Finding(
            "text",
            "the line of an event was read whose date has another form than that of a coordinator",
            "DHsiYXQiOiIyMDI2LTExLTI3VDAyOjAzWiIsImtpbmQiOiIiLCJzZXF1ZW5jZSI6N30="
        ),
        Finding(
            "text",
            "the line of an event was read that has a character which is written with an escape",
            "DHsiYXQiOiIyMDI2LTExLTI3VDAxOjAyOjAzWiIsImF0dGVtcHQiOiJ/Iiwia2luZCI6IiIsInNlcXVlbmNl"
                + "Ijo3fQ=="
        ),
        Finding(
            "seals",
            "a join token was valid that nobody had signed: its key was a point of a small order",
            "A29wZXJvbi1qb2luLTEu" + String(repeating: "QUFB", count: 51)
                + "QUZBQUFBQUFBQUFBQT09"
        ),
        Finding(
            "stored-contents",
            "a stored jitter that is no number was read, and a pause cannot be computed with it",
            "AC8AAAAAAAAACgFnGioKAWEwAkIhCAIQgJTr3AMZAAAAAAAAAEAggLCdwt8BKQAAAAAAAPh/WgA="
        ),
        Finding(
            "stored-contents",
            "a stored factor that is no number was read",
            "AC8AAAAAAAAACgFnGioKAWEwAkIhCAIQgJTr3AMZAAAAAAAA+H8ggLCdwt8BKZqZmZmZmbk/WgA="
        ),
    ]
}

@Suite struct FindingTests {
    @Test(arguments: Finding.all)
    func `what was found stays mended`(finding: Finding) async throws {
        let target = try #require(FuzzTarget.named(finding.target))
        try await target.run(try #require(Base64.decode(Array(finding.base64.utf8)[...])))
    }
}
