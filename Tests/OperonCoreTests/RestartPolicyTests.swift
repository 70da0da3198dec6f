import OperonCore
import Testing

/// When a supervised program is started again.
@Suite struct RestartPolicyTests {
    private static func pause(_ step: RestartPolicy.Step) -> Duration? {
        switch step {
        case .restart(let pause): pause
        case .end: nil
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `pauses double up to the longest, each by chance a little shorter`(seed: UInt64) throws {
        var policy = RestartPolicy(seed: seed)
        var longest = Duration.milliseconds(500)
        for _ in 0..<12 {
            let step = policy.ended(.signal(9), after: .seconds(1), wasAsked: false)
            let pause = try #require(Self.pause(step))
            #expect(pause <= longest)
            #expect(pause >= longest / 2)
            longest = min(longest * 2, .seconds(30))
        }
        #expect(longest == .seconds(30))
    }

    @Test func `a good life forgets the ends before it`() throws {
        var policy = RestartPolicy(seed: 1)
        for _ in 0..<9 {
            _ = policy.ended(.exit(code: 5), after: .seconds(59), wasAsked: false)
        }
        let step = policy.ended(.exit(code: 5), after: .seconds(60), wasAsked: false)

        #expect(try #require(Self.pause(step)) <= .milliseconds(500))
    }

    @Test(arguments: [0, 2, 130, 143] as [Int32])
    func `an end that another start would not change is the end`(code: Int32) {
        var policy = RestartPolicy(seed: 1)
        let step = policy.ended(.exit(code: code), after: .zero, wasAsked: false)
        #expect(step == .end(code: code))
    }

    @Test(
        arguments: [
            .exit(code: 1), .exit(code: 5), .exit(code: 8), .signal(9), .signal(15), .notStarted,
        ] as [RestartPolicy.End]
    )
    func `any other end is followed by another start`(end: RestartPolicy.End) {
        var policy = RestartPolicy(seed: 1)
        #expect(Self.pause(policy.ended(end, after: .seconds(1), wasAsked: false)) != nil)
    }

    @Test(
        arguments: [
            (.exit(code: 0), 0), (.exit(code: 5), 5), (.signal(9), 137), (.notStarted, 0),
        ] as [(RestartPolicy.End, Int32)]
    )
    func `what was asked to end is not started again`(end: RestartPolicy.End, code: Int32) {
        var policy = RestartPolicy(seed: 1)
        #expect(policy.ended(end, after: .zero, wasAsked: true) == .end(code: code))
    }
}
