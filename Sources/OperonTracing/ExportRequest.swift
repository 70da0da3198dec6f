package import OperonModel
package import OperonWire

/// The request and the answer of OTLP's trace service, as Protocol Buffers. The numbers are those
/// of opentelemetry/proto/trace/v1/trace.proto, common.proto, resource.proto and
/// trace_service.proto, version 1.5 (https://github.com/open-telemetry/opentelemetry-proto).
package enum ExportRequest {
    private enum Tag {
        static let resourceSpans: UInt64 = 1 << 3 | length

        static let resource: UInt64 = 1 << 3 | length
        static let scopeSpans: UInt64 = 2 << 3 | length
        static let resourceAttribute: UInt64 = 1 << 3 | length

        static let scope: UInt64 = 1 << 3 | length
        static let span: UInt64 = 2 << 3 | length
        static let scopeName: UInt64 = 1 << 3 | length
        static let scopeVersion: UInt64 = 2 << 3 | length

        static let traceID: UInt64 = 1 << 3 | length
        static let spanID: UInt64 = 2 << 3 | length
        static let parentID: UInt64 = 4 << 3 | length
        static let name: UInt64 = 5 << 3 | length
        static let kind: UInt64 = 6 << 3
        static let start: UInt64 = 7 << 3 | fixed
        static let end: UInt64 = 8 << 3 | fixed
        static let attribute: UInt64 = 9 << 3 | length
        static let link: UInt64 = 13 << 3 | length
        static let linksDropped: UInt64 = 14 << 3
        static let status: UInt64 = 15 << 3 | length
        static let statusMessage: UInt64 = 2 << 3 | length
        static let statusCode: UInt64 = 3 << 3

        static let key: UInt64 = 1 << 3 | length
        static let value: UInt64 = 2 << 3 | length
        static let text: UInt64 = 1 << 3 | length
        static let flag: UInt64 = 2 << 3
        static let number: UInt64 = 3 << 3

        private static let fixed: UInt64 = 1
        private static let length: UInt64 = 2
    }

    private static let errorCode: UInt64 = 2
    private static let spanBytes = 400

    /// - Parameters:
    ///   - resource: The attributes of whoever made the spans.
    ///   - version: The version of the program.
    package static func encode(
        _ spans: [TraceSpan],
        resource: [TraceSpan.Attribute],
        version: String
    ) -> [UInt8] {
        var writer = FieldWriter(reserving: spans.count * spanBytes)
        let start = writer.beginMessage(Tag.resourceSpans)
        let ofResource = writer.beginMessage(Tag.resource)
        for attribute in resource { add(attribute, Tag.resourceAttribute, to: &writer) }
        writer.endMessage(ofResource)
        for scope in TraceSpan.Scope.allCases {
            let own = spans.filter { $0.scope == scope }
            guard !own.isEmpty else { continue }
            let ofScope = writer.beginMessage(Tag.scopeSpans)
            let ofName = writer.beginMessage(Tag.scope)
            writer.add(Tag.scopeName, scope.rawValue)
            writer.add(Tag.scopeVersion, version)
            writer.endMessage(ofName)
            for span in own { add(span, to: &writer) }
            writer.endMessage(ofScope)
        }
        writer.endMessage(start)
        return writer.bytes
    }

    private static func add(_ span: TraceSpan, to writer: inout FieldWriter) {
        let start = writer.beginMessage(Tag.span)
        add(span.context, to: &writer)
        if let parent = span.parent { writer.add(Tag.parentID, bytes(parent.rawValue)) }
        writer.add(Tag.name, span.name)
        writer.add(Tag.kind, UInt64(span.kind.rawValue))
        writer.addFixed(Tag.start, UInt64(clamping: span.start.nanosecondsSince1970))
        writer.addFixed(Tag.end, UInt64(clamping: span.end.nanosecondsSince1970))
        for attribute in span.attributes { add(attribute, Tag.attribute, to: &writer) }
        for link in span.links {
            let start = writer.beginMessage(Tag.link)
            add(link, to: &writer)
            writer.endMessage(start)
        }
        writer.add(Tag.linksDropped, UInt32(clamping: span.linksDropped))
        if let error = span.error {
            let start = writer.beginMessage(Tag.status)
            writer.add(Tag.statusMessage, error)
            writer.add(Tag.statusCode, errorCode)
            writer.endMessage(start)
        }
        writer.endMessage(start)
    }

    /// The ids of a span and of a link have the same numbers.
    private static func add(_ context: TraceContext, to writer: inout FieldWriter) {
        writer.add(Tag.traceID, bytes(context.trace.high) + bytes(context.trace.low))
        writer.add(Tag.spanID, bytes(context.span.rawValue))
    }

    private static func add(
        _ attribute: TraceSpan.Attribute,
        _ tag: UInt64,
        to writer: inout FieldWriter
    ) {
        let start = writer.beginMessage(tag)
        writer.add(Tag.key, attribute.name)
        let ofValue = writer.beginMessage(Tag.value)
        // One of several: it is written even if it is the default.
        switch attribute.value {
        case .text(let text): writer.addEvenEmpty(Tag.text, text)
        case .number(let number): writer.addEvenZero(Tag.number, number)
        case .flag(let flag): writer.addEvenZero(Tag.flag, flag ? 1 as UInt64 : 0)
        }
        writer.endMessage(ofValue)
        writer.endMessage(start)
    }

    /// Big-endian, as the digits are written.
    private static func bytes(_ id: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: id >> UInt64(56 - 8 * $0)) }
    }

    // MARK: - The answer

    /// What a collector did not take of a request that it answered well.
    package struct Rejection: Hashable {
        package var count = 0
        package var why = ""
    }

    private enum AnswerTag {
        static let partialSuccess: UInt64 = 1
        static let rejected: UInt64 = 1
        static let message: UInt64 = 2
    }

    /// The text of a `google.rpc.Status`, with which a collector refuses a request; empty: it has
    /// none.
    package static func refusal(in answer: [UInt8]) -> String {
        var cursor = FieldCursor(0..<answer.count)
        do throws(WireError) {
            while let field = try cursor.next(in: answer) {
                guard field.number == AnswerTag.message, field.hasLength else { continue }
                return String(decoding: answer[field.bytes], as: UTF8.self)
            }
        } catch {
            // It is something else, such as a page of a proxy.
        }
        return ""
    }

    /// - Returns: `nil`: it took everything.
    package static func rejection(in answer: [UInt8]) throws(WireError) -> Rejection? {
        var rejection = Rejection()
        var cursor = FieldCursor(0..<answer.count)
        while let field = try cursor.next(in: answer) {
            guard field.number == AnswerTag.partialSuccess, field.hasLength else { continue }
            var part = FieldCursor(field.bytes)
            while let field = try part.next(in: answer) {
                switch field.number {
                case AnswerTag.rejected where field.isNumber:
                    rejection.count = Int(clamping: Int64(bitPattern: field.value))
                case AnswerTag.message where field.hasLength:
                    rejection.why = String(decoding: answer[field.bytes], as: UTF8.self)
                default: continue
                }
            }
        }
        return rejection == Rejection() ? nil : rejection
    }
}
