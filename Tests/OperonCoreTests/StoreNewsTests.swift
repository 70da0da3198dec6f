import OperonCore
import OperonModel
import Testing

/// When the log says that a store takes no records, and that it takes them again.
@Suite struct StoreNewsTests {
    @Test func `a store that has room now and then is told of once a minute`() {
        var news = StoreNews()
        let told = (0..<180).map { second in
            news.shows(
                isInTrouble: second % 2 == 0,
                at: Timestamp(nanoseconds: second * 1_000_000_000)
            )
        }
        #expect(told.indices.filter { told[$0] } == [0, 1, 60, 61, 120, 121])
    }

    @Test func `trouble that lasts is told, also if it began soon after the last one`() {
        var news = StoreNews()
        let told = (0..<200).map { second in
            news.shows(
                isInTrouble: second != 1 && second < 150,
                at: Timestamp(nanoseconds: second * 1_000_000_000)
            )
        }
        #expect(told.indices.filter { told[$0] } == [0, 1, 60, 150])
    }
}
