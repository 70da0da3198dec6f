import OperonCore
import OperonModel
import Testing

/// How long a worker gives attempts back that its machine has nothing left for.
@Suite struct ShortagePauseTests {
    private func moment(_ seconds: Int64) -> Timestamp {
        Timestamp(nanoseconds: seconds * 1_000_000_000)
    }

    @Test func `the pause doubles while the shortage lasts, up to half a minute`() {
        var shortage = ShortagePause()
        var pauses: [Duration] = []
        var now = moment(10)
        for _ in 0..<7 {
            let (pause, isNew) = shortage.missed(at: now)
            #expect(isNew)
            pauses.append(pause)
            now = now + pause
        }

        #expect(pauses == [1, 2, 4, 8, 16, 30, 30].map { .seconds($0) })
    }

    @Test func `many attempts of one pause count as one`() {
        var shortage = ShortagePause()
        _ = shortage.missed(at: moment(10))

        for _ in 0..<64 {
            let (pause, isNew) = shortage.missed(at: moment(10))
            #expect(pause == .seconds(1))
            #expect(!isNew)
        }
    }

    @Test func `an attempt that was served ends the shortage`() {
        var shortage = ShortagePause()
        _ = shortage.missed(at: moment(10))
        _ = shortage.missed(at: moment(11))
        shortage.served()

        #expect(shortage.missed(at: moment(12)).pause == .seconds(1))
    }
}
