import OperonModel
import OperonTerminal
import Testing

@Suite struct TimeFormatTests {
    @Test(arguments: [
        (Duration.milliseconds(3), "3.0 ms"), (.milliseconds(161), "161 ms"),
        (.milliseconds(1_600), "1.6 s"), (.seconds(61), "1:01"),
        (.seconds(273_906), "3d 04:05:06"),
    ])
    func `a sentence has a space before the unit`(duration: Duration, text: String) {
        #expect(TimeFormat.words(duration) == text)
    }

    @Test(arguments: [
        (0.0, "0:00"), (7.9, "0:07"), (723, "12:03"), (3_723, "1:02:03"), (273_906, "3d 04:05:06"),
        (-1, "0:00"),
    ])
    func `a clock`(seconds: Double, expected: String) {
        #expect(TimeFormat.clock(.seconds(seconds)) == expected)
    }

    @Test(arguments: [
        (0, "0.0ms"), (850, "0.9ms"), (9_960, "10.0ms"), (12_400, "12ms"), (1_234_000, "1.2s"),
        (59_940_000, "59.9s"), (61_000_000, "1:01"),
    ])
    func `a measurement`(microseconds: Int, expected: String) {
        #expect(TimeFormat.short(.microseconds(microseconds)) == expected)
    }

    @Test(arguments: [
        (0, "0"), (12_000_000, "12"), (500_000, "0.5"), (1, "0.000001"), (-1_250_000, "-1.25"),
        (3_000_010, "3.00001"),
    ])
    func `decimal seconds`(microseconds: Int, expected: String) {
        #expect(TimeFormat.decimalSeconds(.microseconds(microseconds)) == expected)
    }

    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_400, "2000-02-29T00:00:00.000Z"),
        (1_795_231_386, "2026-11-21T03:23:06.000Z"),
        (4_107_542_399, "2100-02-28T23:59:59.000Z"),
        (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.000Z"),
    ])
    func `a moment in ISO 8601`(seconds: Int64, expected: String) {
        let moment = WallTime(nanosecondsSince1970: seconds * 1_000_000_000)
        #expect(TimeFormat.iso8601(moment) == expected)
    }
}
