import OperonModel
import OperonTestKit
import Testing

@testable import OperonCore

struct OutcomeDetailsTests {
    @Test func `it has for each operation what was set last`() {
        var generator = SeededGenerator(seed: 1)
        var details = OutcomeDetails()
        var expected: [UInt32: Outcome] = [:]
        for round in 0..<2_000 {
            let first = UInt32(generator.next() % 100)
            let outcome = Outcome.cancelled(reason: "\(round)")
            switch generator.next() % 3 {
            case 0:
                details[first] = outcome
                expected[first] = outcome
            case 1:
                // It is reopened and finishes anew.
                details[first] = nil
                details[first] = outcome
                expected[first] = outcome
            default:
                let indices = first..<first + 1 + UInt32(generator.next() % 20)
                details.set(indices, to: outcome)
                for index in indices { expected[index] = outcome }
            }
            for index in 0..<UInt32(130) { #expect(details[index] == expected[index]) }
        }
    }

    @Test func `those that are restored in order are found`() {
        var details = OutcomeDetails()
        let reasons = ["a", "a", "b", "b", "a"]
        for (index, reason) in reasons.enumerated() {
            details.append(.cancelled(reason: reason), of: UInt32(2 * index))
        }
        details.append(.failed(.timeout), of: 10)
        details.append(.cancelled(reason: "late"), of: 3)
        for (index, reason) in reasons.enumerated() {
            #expect(details[UInt32(2 * index)] == .cancelled(reason: reason))
        }
        #expect(details[10] == .failed(.timeout))
        #expect(details[3] == .cancelled(reason: "late"))
        #expect(details[5] == nil)
    }
}
