import Logging
import NIOConcurrencyHelpers
import OperonModel
import OperonRuntime
import Testing

@Suite struct JSONLogTests {
    @Test func `a line is one object, whatever is in it`() {
        let lines = NIOLockedValueBox("")
        let logger = Logger(label: "operon") { label in
            JSONLog(label: label, level: .info) {
                WallTime(nanosecondsSince1970: 0)
            } write: { bytes in
                lines.withLockedValue { $0 += String(decoding: bytes, as: UTF8.self) }
            }
        }
        logger.debug("not said")
        logger.info(
            "two\n“lines”",
            metadata: ["b": ["x", "y\"z"], "a": ["k": "\(1)"], "c": .stringConvertible(2)]
        )

        let time = DateText.text(WallTime(nanosecondsSince1970: 0))
        #expect(
            lines.withLockedValue { $0 }
                == #"{"time":"\#(time)","level":"info","label":"operon","#
                + #""message":"two\n“lines”","metadata":"#
                + #"{"a":{"k":"1"},"b":["x","y\"z"],"c":"2"}}"# + "\n"
        )
    }
}
