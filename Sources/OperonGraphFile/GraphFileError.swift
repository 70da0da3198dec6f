package import OperonModel

/// Why a graph file was refused: every problem that was found, with its position.
///
/// A file is accepted whole or not at all.
package struct GraphFileError: Error, Hashable, Sendable {
    /// The problems in the order in which they were found; at least one, at most `problemsMax`.
    package var problems: [Problem]
    /// Whether reading stopped because there were more.
    package var isTruncated: Bool

    /// With more problems than this, a person fixes the first ones and tries again.
    package static let problemsMax = 20

    package init(problems: [Problem], isTruncated: Bool = false) {
        self.problems = problems
        self.isTruncated = isTruncated
    }

    /// One problem.
    package struct Problem: Error, Hashable, Sendable {
        package var code: Code
        /// The file, as the caller named it.
        package var file: String
        /// The line, from 1; 0 if the problem has no position in the file.
        package var line: Int
        /// The column, from 1, in Unicode scalars; 0 if the problem has no position in the file.
        package var column: Int
        /// The offending text, as it is in the file.
        package var thing: String
        /// A sentence that a person can act on, without file and position.
        package var message: String
        /// Which limit was exceeded, for `limitExceeded`.
        package var limit: LimitName?

        package init(
            code: Code,
            file: String,
            line: Int,
            column: Int,
            thing: String,
            message: String,
            limit: LimitName? = nil
        ) {
            self.code = code
            self.file = file
            self.line = line
            self.column = column
            self.thing = thing
            self.message = message
            self.limit = limit
        }
    }

    /// The kind of a problem. Codes are stable, because programs depend on them.
    package enum Code: String, Hashable, Sendable, CaseIterable {
        /// The file cannot be opened or read.
        case unreadable
        /// The file is empty.
        case empty
        /// The file is not YAML, JSON or UTF-8.
        case syntax
        /// A key occurs twice in one map.
        case duplicateKey
        case unknownKey
        case missingKey
        /// Two keys that exclude each other, or a key where it has no meaning.
        case misplacedKey
        /// A value of the wrong type, such as a list instead of a text.
        case wrongType
        /// A value of the right type that is not allowed.
        case invalidValue
        case duplicateOperation
        case unknownOperation
        case dependencyCycle
        case limitExceeded
        /// A value that a shell would read as a part of its script.
        case unsafeValue
        /// The file can be read, but the graph cannot run as described.
        case unsupported
        /// Any other refusal of the graph as a whole.
        case refused
    }
}

extension GraphFileError.Problem: CustomStringConvertible {
    /// `pipeline.yaml:12:5: unknown key “dependancies”; did you mean “dependencies”?`
    package var description: String {
        line == 0 ? "\(file): \(message)" : "\(file):\(line):\(column): \(message)"
    }
}

extension GraphFileError: CustomStringConvertible {
    /// One line for each problem.
    package var description: String {
        var lines = problems.map(\.description)
        if isTruncated {
            lines.append("more problems follow; these are the first \(problems.count)")
        }
        return lines.joined(separator: "\n")
    }
}

/// Why reading stops early. It becomes a `GraphFileError` where the name of the file is known.
enum Stop: Error {
    /// Nothing after this position can be interpreted.
    case problem(Problem)
    /// There is one more problem than `problemsMax`.
    case enough
    /// The problem is in the log already, and nothing after it can be interpreted.
    case reported

    typealias Problem = GraphFileError.Problem
}

/// Collects problems while reading continues.
struct ProblemLog {
    private static let warningsMax = 20

    private(set) var problems: [GraphFileError.Problem] = []
    /// What can be read, and is probably not meant: the first few.
    private(set) var warnings: [GraphFileError.Problem] = []

    /// Records a problem; stops reading when there are too many.
    mutating func report(_ problem: GraphFileError.Problem) throws(Stop) {
        guard problems.count < GraphFileError.problemsMax else { throw .enough }
        problems.append(problem)
    }

    mutating func report(
        _ code: GraphFileError.Code,
        at position: Position,
        _ thing: String,
        _ message: String
    ) throws(Stop) {
        try report(GraphFileError.Problem(code, at: position, thing, message))
    }

    mutating func warn(at position: Position, _ thing: String, _ message: String) {
        guard warnings.count < Self.warningsMax else { return }
        warnings.append(GraphFileError.Problem(.invalidValue, at: position, thing, message))
    }

    /// The error to throw after reading stopped; `nil` if there was no problem.
    func error(after stop: Stop?, file: String) -> GraphFileError? {
        var all = problems
        var isTruncated = false
        switch stop {
        case .problem(let problem):
            if all.count < GraphFileError.problemsMax {
                all.append(problem)
            } else {
                isTruncated = true
            }
        case .enough: isTruncated = true
        case .reported, nil: break
        }
        guard !all.isEmpty else { return nil }
        // A value of a parameter has another place than this file.
        for index in all.indices where all[index].file.isEmpty { all[index].file = file }
        return GraphFileError(problems: all, isTruncated: isTruncated)
    }
}

extension GraphFileError.Problem {
    /// Creates a problem whose file is set later.
    init(
        _ code: GraphFileError.Code,
        at position: Position,
        _ thing: String,
        _ message: String
    ) {
        self.init(
            code: code,
            file: "",
            line: Int(position.line),
            column: Int(position.column),
            thing: thing.shortened,
            message: message
        )
    }

    /// Creates a problem for a limit that `subject` exceeds, for example `the name “aaaa…”`.
    init(
        limit: LimitName,
        value: Int,
        maximum: Int,
        at position: Position,
        _ thing: String,
        _ subject: String
    ) {
        self.init(
            .limitExceeded,
            at: position,
            thing,
            "\(subject): \(value) is over the limit of \(maximum) \(limit.description)"
                + " (\(limit.rawValue))"
        )
        self.limit = limit
    }
}

extension String {
    /// Shortened for messages: at most sixty characters, control characters made visible.
    var shortened: String {
        var text = ""
        var count = 0
        for scalar in unicodeScalars {
            guard count < 60 else { return text + "…" }
            if scalar.properties.generalCategory == .control {
                text += "\\u{" + String(scalar.value, radix: 16) + "}"
            } else {
                text.unicodeScalars.append(scalar)
            }
            count += 1
        }
        return text
    }

    /// In quotation marks, for messages.
    var quoted: String { "“\(shortened)”" }
}
