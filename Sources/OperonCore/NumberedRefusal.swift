package import OperonModel

/// Why the scheduler refused something. The scheduler knows operations only by number; with their
/// names the refusal becomes a `Refusal`, which people read.
package enum NumberedRefusal: Error, Hashable, Sendable {
    /// It mentions no operation by number.
    case worded(Refusal)
    /// The operations of the cycle, each waiting for the next; the first is repeated at the end.
    case dependencyCycle([OperationID])
    /// A cycle that a wait of a running operation would close; that operation is the first. `nil`
    /// stands for operations that are left out.
    case waitCycle([OperationID?])
    /// Another operation names it, or the request (`nil`).
    case unknownOperation(OperationID, namedBy: OperationID? = nil)
    case alreadyStarted(OperationID)
    /// `attempt` is the one that the command names, if that is not the one that executes.
    case alreadyFinished(OperationID, attempt: AttemptID? = nil)
    /// The operation depends on the other one already, under another condition.
    case otherCondition(OperationID, on: OperationID)
    case noDependency(OperationID, on: OperationID)
    case notRetried(OperationID, why: String)
    case notRetriedAlone(OperationID, skippedFor: OperationID)
    case notCompleted(OperationID, why: String)

    /// Puts it into words.
    ///
    /// - Parameter name: The name of an operation within its graph.
    package func worded(_ name: (OperationID) -> String) -> Refusal {
        func named(_ id: OperationID, in graph: GraphID? = nil) -> String {
            id.graph == graph ? name(id) : "\(id.graph)/\(name(id))"
        }
        func invalid(_ part: String, _ id: OperationID, _ why: String) -> Refusal {
            .invalid(field: "\(part) of “\(named(id))”", why: why)
        }
        func cannot(_ verb: String, _ id: OperationID, _ why: String) -> Refusal {
            .invalid(field: "“\(named(id))” cannot be \(verb)", why: why)
        }
        switch self {
        case .worded(let refusal): return refusal
        case .dependencyCycle(let path): return .dependencyCycle(path: path.map { named($0) })
        case .waitCycle(let path):
            // An operation calls those of its own graph by their names alone.
            let graph = path.first??.graph
            let names = path.map { $0.map { named($0, in: graph) } ?? "…" }
            return .dependencyCycle(path: names)
        case .unknownOperation(let id, let other):
            let other = other.map { named($0) } ?? "the request"
            return .unknownOperation(name: named(id), namedBy: other)
        case .alreadyStarted(let id): return .alreadyStarted(name: named(id))
        case .alreadyFinished(let id, let attempt):
            let attempt = attempt.map { " (attempt id \($0))" } ?? ""
            return .alreadyFinished(name: named(id) + attempt)
        case .otherCondition(let id, let other):
            return invalid(
                "dependencies",
                id,
                "“\(named(other))” is listed with another condition"
            )
        case .noDependency(let id, let other):
            return invalid("dependencies", id, "it does not depend on “\(named(other))”")
        case .notRetried(let id, let why): return cannot("retried", id, why)
        case .notRetriedAlone(let id, let cause):
            let why = "it was skipped because of “\(named(cause))”, so retry that"
            return cannot("retried", id, why)
        case .notCompleted(let id, let why): return cannot("completed", id, why)
        }
    }
}

extension Scheduler {
    /// An answer to a request of a running operation, before its refusal is put into words.
    package typealias Verdict = VerdictOf<NumberedRefusal>
}

// MARK: - Length

extension NumberedRefusal {
    /// Bytes of each text in a verdict: more than a sentence with two names needs.
    private static let textBytes = 1_024

    /// Refuses an operation its wait, because what it wants to wait for waits for it, along a path.
    static func waitCycle(_ operation: OperationID, _ path: [OperationID]) -> NumberedRefusal {
        .waitCycle(ends(of: [operation] + path, gap: nil))
    }

    /// The refusal, cut to a length that a person reads. A verdict travels with every beat until it
    /// has arrived, and the names in it come from an operation.
    var cutShort: NumberedRefusal {
        guard case .worded(let refusal) = self else { return self }
        return .worded(Self.cutShort(refusal))
    }

    private static func cutShort(_ refusal: Refusal) -> Refusal {
        func short(_ text: String) -> String { text.cut(toBytes: textBytes) }
        return switch refusal {
        case .dependencyCycle(let path):
            .dependencyCycle(path: ends(of: path, gap: "…").map(short))
        case .unknownOperation(let name, let namedBy):
            .unknownOperation(name: short(name), namedBy: short(namedBy))
        case .duplicateOperation(let name): .duplicateOperation(name: short(name))
        case .alreadySubmitted(let name): .alreadySubmitted(name: short(name))
        case .alreadyStarted(let name): .alreadyStarted(name: short(name))
        case .alreadyFinished(let name): .alreadyFinished(name: short(name))
        case .graphClosed(let name): .graphClosed(name: short(name))
        case .invalid(let field, let why): .invalid(field: short(field), why: short(why))
        case .limitExceeded: refusal
        case .unreachable(let why): .unreachable(short(why))
        }
    }

    /// The two ends of a long cycle, with `gap` for what is between them.
    private static func ends<Name>(of path: [Name], gap: Name) -> [Name] {
        let shown = 64
        return path.count > shown ? path.prefix(shown / 2) + [gap] + path.suffix(shown / 2) : path
    }

    /// At most about so many bytes in a message, if it was cut short.
    func byteCount(_ limits: Limits) -> Int {
        switch self {
        case .worded(.dependencyCycle(let path)): path.reduce(0) { $0 + 4 + $1.utf8.count }
        case .worded, .unknownOperation, .alreadyStarted, .alreadyFinished, .otherCondition,
            .noDependency, .notRetried, .notRetriedAlone, .notCompleted:
            2 * Self.textBytes
        case .dependencyCycle(let path): path.count * (16 + limits.nameBytes)
        case .waitCycle(let path): path.count * (16 + limits.nameBytes)
        }
    }
}
