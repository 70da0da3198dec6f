import Foundation
import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct CronTests {
    private struct Fixture {
        var zones: [String: [UInt8]] = [:]
        var rows: [(expression: String, zone: String, start: Int64, times: [Int64])] = []

        /// Written by `scripts/generate-cron-fixture`.
        init() throws {
            let file = URL(filePath: #filePath).deletingLastPathComponent()
                .appending(path: "Fixtures/cron.txt")
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                let words = line.split(separator: " ")
                if words[0] == "zone" {
                    let data = try #require(Data(base64Encoded: String(words[2])))
                    zones[String(words[1])] = Array(data)
                    continue
                }
                let parts = line.split(separator: "|").map(String.init)
                let times = parts[3].split(separator: " ").compactMap { Int64($0) }
                rows.append((parts[0], parts[1], try #require(Int64(parts[2])), times))
            }
        }
    }

    @Test func `a thousand expressions name the times that croniter and zoneinfo name`() throws {
        let fixture = try Fixture()
        #expect(fixture.rows.count == 1_000)
        let zones = try fixture.zones.mapValues { try TimeZoneRules(tzif: $0) }
        for row in fixture.rows {
            let zone = try #require(zones[row.zone])
            let schedule = CronSchedule(try CronExpression(row.expression), in: zone)
            var place = row.start
            var times: [Int64] = []
            for _ in row.times {
                guard let next = schedule.next(after: place) else { break }
                times.append(next)
                place = next
            }
            #expect(times == row.times, "\(row.expression) in \(row.zone) after \(row.start)")
        }
    }

    @Test func `damaged time zones are refused or read, and never stop the program`() throws {
        let fixture = try Fixture()
        let berlin = try #require(fixture.zones["Europe/Berlin"])
        var draw = SeededGenerator(seed: 7)
        for count in stride(from: 0, to: berlin.count, by: 7) {
            #expect(throws: TimeZoneRules.Problem.self) {
                _ = try TimeZoneRules(tzif: Array(berlin[..<count]))
            }
        }
        for _ in 0..<2_000 {
            var bytes = berlin
            for _ in 0...(draw.next() % 4) {
                bytes[Int(draw.next() % UInt64(bytes.count))] = UInt8(
                    truncatingIfNeeded: draw.next()
                )
            }
            guard let rules = try? TimeZoneRules(tzif: bytes) else { continue }
            for time in [Int64(-9_000_000_000), 0, 1_774_746_000, 9_000_000_000] {
                let local = rules.local(at: time)
                #expect(abs(local - time) <= 26 * 3_600)
                _ = rules.instant(ofLocal: local)
            }
        }
    }

    @Test(arguments: [
        ("0 3 * *", "it has 4 fields"), ("60 * * * *", "minute “60” is no number from 0 to 59"),
        ("* 24 * * *", "hour “24”"), ("* * 0 * *", "day of the month “0”"),
        ("* * * 13 *", "month “13”"), ("* * * * 8", "day of the week “8”"),
        ("5-1 * * * *", "ends before it begins"), ("*/0 * * * *", "a step"),
        ("1//2 * * * *", "more than one step"), ("* * * * mon#6", "which one of the month"),
        ("@reboot", "is none of @annually"), ("1,,2 * * * *", "minute “”"),
        ("-1 * * * *", "minute “”"), ("+1 * * * *", "minute “+1”"), ("", "it has 0 fields"),
        ("99999999999999999999 * * * *", "is no number"),
    ])
    func `a wrong expression says which field is wrong`(text: String, why: String) {
        do throws(CronExpression.Problem) {
            _ = try CronExpression(text)
            Issue.record("“\(text)” was taken")
        } catch {
            #expect(error.description.contains(why), "\(error)")
        }
    }

    @Test func `a change at the end of time is refused`() throws {
        let berlin = try #require(try Fixture().zones["Europe/Berlin"])
        // The second header, behind the first block, then the changes.
        let header = try #require(
            (1..<berlin.count - 4).last { Array(berlin[$0..<$0 + 4]) == Array("TZif".utf8) }
        )
        let count = berlin[(header + 32)..<(header + 36)].reduce(0) { $0 << 8 | Int($1) }
        var bytes = berlin
        let last = header + 44 + 8 * (count - 1)
        bytes.replaceSubrange(last..<last + 8, with: [0x7F] + Array(repeating: 0xFF, count: 7))
        #expect(throws: TimeZoneRules.Problem.self) { _ = try TimeZoneRules(tzif: bytes) }
    }

    @Test func `an expression that no day matches has no next time`() throws {
        let never = CronSchedule(try CronExpression("0 0 30 2 *"), in: .utc)
        #expect(never.next(after: 0) == nil)
        let leapDay = CronSchedule(try CronExpression("0 0 29 feb *"), in: .utc)
        #expect(leapDay.next(after: 4_000_000_000) == 4_233_686_400)
    }
}
