import OperonModel
import OperonTracing
import Testing

/// scripts/check-observability decodes whole requests with OpenTelemetry's own messages.
@Suite struct ExportRequestTests {
    @Test func `an answer without a complaint rejects nothing`() throws {
        #expect(try ExportRequest.rejection(in: []) == nil)
        // partial_success, empty.
        #expect(try ExportRequest.rejection(in: [0x0A, 0]) == nil)
    }

    @Test func `what a collector rejects is read`() throws {
        let rejection = try ExportRequest.rejection(
            in: [0x0A, 7, 0x08, 0xAC, 0x02, 0x12, 2, 0x6E, 0x6F]
        )
        #expect(rejection?.count == 300)
        #expect(rejection?.why == "no")
    }

    @Test func `an answer that is cut off is refused`() {
        #expect(throws: (any Error).self) { try ExportRequest.rejection(in: [0x0A, 9, 0x08]) }
    }
}
