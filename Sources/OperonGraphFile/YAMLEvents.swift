// The system's libyaml, whose events are all that is needed. A package that makes a tree of a file,
// such as Yams, is unsuitable for untrusted files: it keeps the whole tree, recurses without a
// bound, hashes a key that is an alias by walking everything it expands to, and stops at the first
// duplicate key without saying where the other one is.
import COperonYAML

/// The events of a YAML text, in order, with line and column. Owns the C parser and its input.
@safe struct YAMLEvents: ~Copyable {
    enum Event {
        case scalar(Scalar)
        case sequenceStart(anchor: String?, tag: String?)
        case sequenceEnd
        case mappingStart(anchor: String?, tag: String?)
        case mappingEnd
        case alias(String)
        case documentStart
        case documentEnd
        case streamEnd
    }

    struct Scalar {
        var text: String
        /// Written without quotation marks, so that it may be a number, a boolean or null.
        var isPlain: Bool
        var tag: String?
        var anchor: String?
    }

    // The C parser stores its own address, so it must not move.
    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let input: UnsafeMutableBufferPointer<UInt8>

    init(_ bytes: [UInt8]) {
        unsafe parser = .allocate(capacity: 1)
        unsafe input = .allocate(capacity: bytes.count)
        _ = unsafe input.initialize(from: bytes)
        // Fails only when memory is exhausted. `next` then reports it, because the parser is all
        // zeros.
        _ = unsafe yaml_parser_initialize(parser)
        unsafe yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        unsafe yaml_parser_set_input_string(parser, input.baseAddress, input.count)
    }

    deinit {
        unsafe yaml_parser_delete(parser)
        unsafe parser.deallocate()
        unsafe input.deallocate()
    }

    /// The next event and the position where it begins.
    mutating func next() throws(Stop) -> (event: Event, position: Position) {
        while true {
            var event = unsafe yaml_event_t()
            guard unsafe yaml_parser_parse(parser, &event) == 1 else { throw failure() }
            defer { unsafe yaml_event_delete(&event) }
            let position = unsafe Position(event.start_mark)
            guard let translated = unsafe Self.translated(event) else { continue }
            return (translated, position)
        }
    }

    /// `nil` for the events that carry no information.
    private static func translated(_ event: yaml_event_t) -> Event? {
        switch unsafe event.type {
        case YAML_SCALAR_EVENT:
            let scalar = unsafe event.data.scalar
            let text = unsafe String(
                decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length),
                as: UTF8.self
            )
            return unsafe .scalar(
                Scalar(
                    text: text,
                    isPlain: scalar.style == YAML_PLAIN_SCALAR_STYLE,
                    tag: string(scalar.tag),
                    anchor: string(scalar.anchor)
                )
            )
        case YAML_SEQUENCE_START_EVENT:
            let start = unsafe event.data.sequence_start
            return unsafe .sequenceStart(anchor: string(start.anchor), tag: string(start.tag))
        case YAML_SEQUENCE_END_EVENT: return .sequenceEnd
        case YAML_MAPPING_START_EVENT:
            let start = unsafe event.data.mapping_start
            return unsafe .mappingStart(anchor: string(start.anchor), tag: string(start.tag))
        case YAML_MAPPING_END_EVENT: return .mappingEnd
        case YAML_ALIAS_EVENT: return unsafe .alias(string(event.data.alias.anchor) ?? "")
        case YAML_DOCUMENT_START_EVENT: return .documentStart
        case YAML_DOCUMENT_END_EVENT: return .documentEnd
        // After the end, the parser returns events without a type forever.
        case YAML_STREAM_END_EVENT, YAML_NO_EVENT: return .streamEnd
        default: return nil
        }
    }

    private static func string(_ pointer: UnsafeMutablePointer<UInt8>?) -> String? {
        guard let pointer = unsafe pointer else { return nil }
        return unsafe String(cString: pointer)
    }

    private func failure() -> Stop {
        let problem =
            unsafe parser.pointee.problem.map { unsafe String(cString: $0) } ?? "out of memory"
        let context = unsafe parser.pointee.context.map { unsafe String(cString: $0) }
        let message = context.map { "\($0), \(problem)" } ?? problem
        if unsafe parser.pointee.error == YAML_READER_ERROR {
            let offset = unsafe Int(clamping: parser.pointee.problem_offset)
            return .problem(
                GraphFileError.Problem(
                    .syntax,
                    at: position(ofByte: offset),
                    hexadecimal(offset),
                    "not YAML in UTF-8: \(problem)"
                )
            )
        }
        let mark = unsafe Position(parser.pointee.problem_mark)
        let text = sentence(problem: problem, context: context, at: mark) ?? message
        return .problem(GraphFileError.Problem(.syntax, at: mark, "", "not YAML: \(text)"))
    }

    /// A sentence for the mistakes that people make most; `nil`: the parser's own.
    private func sentence(problem: String, context: String?, at mark: Position) -> String? {
        let byte = byte(at: mark)
        if problem.contains("cannot start any token") {
            switch byte {
            case UInt8(ascii: "\t"): return "a tab stands where only spaces may: indent with spaces"
            case UInt8(ascii: "@"), UInt8(ascii: "`"), UInt8(ascii: "%"):
                let character = Character(Unicode.Scalar(byte))
                return "a text that begins with “\(character)” must be in quotes"
            default: return nil
            }
        }
        if problem.hasPrefix("mapping values are not allowed") {
            return "“:” stands where no key can be: a text with “: ” must be in quotes, as in "
                + "run: 'echo \"a: b\"', or the line is indented too far"
        }
        switch context {
        case "while parsing a flow mapping":
            return "“,” or “}” is missing: within { … }, a text with braces, brackets, “,” or “: ” "
                + "must be in quotes, as in \"${item}\""
        case "while parsing a flow sequence":
            return "“,” or “]” is missing: within [ … ], a text with braces, brackets, “,” or “: ” "
                + "must be in quotes"
        case "while scanning an alias" where byte == UInt8(ascii: "]"):
            return "a name with brackets must be in quotes within a list, as in [\"fetch[*]\"]"
        case "while scanning an alias": return "a text that begins with “*” must be in quotes"
        case "while scanning an anchor": return "a text that begins with “&” must be in quotes"
        default: return nil
        }
    }

    /// The first byte of the character at this place; 0: there is none.
    private func byte(at place: Position) -> UInt8 {
        var position = Position(line: 1, column: 1)
        for index in unsafe 0..<input.count {
            let byte = unsafe input[index]
            if byte & 0xC0 != 0x80, position == place { return byte }
            if byte == Byte.newline {
                position.line += 1
                position.column = 1
            } else if byte & 0xC0 != 0x80 {
                position.column += 1
            }
        }
        return 0
    }

    private func hexadecimal(_ offset: Int) -> String {
        guard unsafe offset < input.count else { return "" }
        return unsafe "0x" + String(input[offset], radix: 16, uppercase: true)
    }

    private func position(ofByte offset: Int) -> Position {
        var position = Position(line: 1, column: 1)
        for index in 0..<min(offset, unsafe input.count) {
            let byte = unsafe input[index]
            if byte == Byte.newline {
                position.line += 1
                position.column = 1
            } else if byte & 0xC0 != 0x80 {
                position.column += 1
            }
        }
        return position
    }
}

extension Position {
    fileprivate init(_ mark: yaml_mark_t) {
        self.init(
            line: UInt32(clamping: mark.line + 1),
            column: UInt32(clamping: mark.column + 1)
        )
    }
}
