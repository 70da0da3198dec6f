/// Why an operation failed.
@nonexhaustive
public enum OperationError: Error, Hashable, Sendable, Codable {
    /// The worker does not know this kind.
    case kindUnknown(String)
    /// The operation's code threw an error: its type, its description, and its encoded value if
    /// there is one.
    case thrown(type: String, message: String, payload: [UInt8])
    /// The operation's process ended with this exit code, which is not 0.
    case exit(code: Int32)
    /// The operation's process was ended by a signal, for example `SIGSEGV`.
    case signal(name: String)
    /// The attempt ran longer than its `timeout`.
    case timeout
    /// The operation had not finished by its `deadline`.
    case deadline
    /// The operation's worker died too many times while running it.
    case workerLost
    /// The input is larger than the limit; both in bytes.
    case inputTooLarge(bytes: Int, limit: Int)
    /// The output is larger than the limit; both in bytes.
    case outputTooLarge(bytes: Int, limit: Int)
    /// The worker could not decode its input, for this reason.
    case undecodable(String)
    /// The worker does not support this version of the kind.
    case versionUnsupported(String)
    /// The condition of this name did not hold.
    case conditionFailed(name: String)
}

extension OperationError: CustomStringConvertible {
    /// One line for a person.
    public var description: String {
        switch self {
        case .kindUnknown(let kind): "no worker knows how to run “\(kind)”"
        case .thrown(let type, let message, _): message.isEmpty ? type : message
        case .exit(let code): "exit code \(code)"
        case .signal("SIGXCPU"): "ended by SIGXCPU: its CPU time was used up"
        case .signal(let name): "ended by \(name)"
        case .timeout: "timed out"
        case .deadline: "not finished by its deadline"
        case .workerLost: "its worker died under it too often"
        case .inputTooLarge(let bytes, let limit):
            "input of \(bytes) bytes is over the limit of \(limit)"
        case .outputTooLarge(let bytes, let limit):
            "output of \(bytes) bytes is over the limit of \(limit)"
        case .undecodable(let why): "its worker could not read it: \(why)"
        case .versionUnsupported(let version): "version \(version) is not known to its worker"
        case .conditionFailed(let name): "condition “\(name)” did not hold"
        }
    }

    /// The approximate size of its texts in a message.
    package var byteCount: Int {
        switch self {
        case .kindUnknown(let text), .signal(let text), .undecodable(let text),
            .versionUnsupported(let text), .conditionFailed(let text):
            text.utf8.count
        case .thrown(let type, let message, let payload):
            type.utf8.count + message.utf8.count + payload.count
        case .exit, .timeout, .deadline, .workerLost, .inputTooLarge, .outputTooLarge: 0
        }
    }

    /// The name in JSON output. Names never change.
    public var code: String {
        switch self {
        case .kindUnknown: "kindUnknown"
        case .thrown: "thrown"
        case .exit: "exit"
        case .signal: "signal"
        case .timeout: "timeout"
        case .deadline: "deadline"
        case .workerLost: "workerLost"
        case .inputTooLarge: "inputTooLarge"
        case .outputTooLarge: "outputTooLarge"
        case .undecodable: "undecodable"
        case .versionUnsupported: "versionUnsupported"
        case .conditionFailed: "conditionFailed"
        }
    }

    /// Whether `retry.limit` may allow another attempt after this error: true for failures of the
    /// work itself, false for faults of the request.
    public var isRetryable: Bool {
        switch self {
        case .thrown, .exit, .signal, .timeout: true
        case .kindUnknown, .deadline, .workerLost, .inputTooLarge, .outputTooLarge, .undecodable,
            .versionUnsupported, .conditionFailed:
            false
        }
    }
}

/// Why a call was refused. A refused call has no effect at all. Later versions may add cases.
@nonexhaustive
public enum Refusal: Error, Hashable, Sendable, Codable {
    /// The operations of the cycle, each waiting for the next; the first is repeated at the end.
    case dependencyCycle(path: [String])
    /// An operation that does not exist, and the operation that names it.
    case unknownOperation(name: String, namedBy: String)
    case duplicateOperation(name: String)
    case alreadySubmitted(name: String)
    case alreadyStarted(name: String)
    case alreadyFinished(name: String)
    case graphClosed(name: String)
    case invalid(field: String, why: String)
    case limitExceeded(limit: LimitName, value: Int, maximum: Int)
    case unreachable(String)
}

extension Refusal: CustomStringConvertible {
    /// One sentence for a person.
    public var description: String {
        switch self {
        case .dependencyCycle(let path):
            "dependency cycle: " + Refusal.shortened(path).joined(separator: " → ")
        case .unknownOperation(let name, let namedBy):
            "“\(namedBy)” depends on “\(name)”, which does not exist"
        case .duplicateOperation(let name): "operation “\(name)” is defined twice"
        case .alreadySubmitted(let name): "operation “\(name)” was submitted already"
        case .alreadyStarted(let name): "operation “\(name)” has started already"
        case .alreadyFinished(let name): "operation “\(name)” has finished already"
        case .graphClosed(let name): "graph “\(name)” is closed"
        case .invalid(let field, let why): "\(field): \(why)"
        case .limitExceeded(let limit, let value, let maximum):
            "\(limit.description): \(value) is over the limit of \(maximum)"
        case .unreachable(let why): why
        }
    }

    /// The description as a sentence that stands alone, and not behind a position in a file.
    package var sentence: String {
        switch self {
        case .invalid(let field, _) where field.first == "“": description + "."
        // They begin with the name of a field, or are sentences already.
        case .invalid, .unreachable: description
        default: description.prefix(1).uppercased() + description.dropFirst() + "."
        }
    }

    /// Shows only the two ends of a long cycle, which may have a million operations.
    private static func shortened(_ path: [String]) -> [String] {
        let shown = 12
        guard path.count > shown else { return path }
        let skipped = path.count - shown
        return path.prefix(shown / 2) + ["… \(skipped) more …"] + path.suffix(shown / 2)
    }
}
