package import OperonModel

/// Why a graph file was refused: everything found wrong with it, each with its place.
///
/// A file is accepted whole or not at all.
package struct GraphFileError: Error, Hashable, Sendable {
    /// In the order in which they were found; at least one, at most `problemsMax`.
    package var problems: [Problem]
    /// Whether reading stopped because there were more.
    package var isTruncated: Bool

    /// Beyond this a person mends the first ones and tries again.
    package static let problemsMax = 20

    package init(problems: [Problem], isTruncated: Bool = false) {
        self.problems = problems
        self.isTruncated = isTruncated
    }

    /// One thing that is wrong.
    package struct Problem: Error, Hashable, Sendable {
        package var code: Code
        /// As the caller named it.
        package var file: String
        /// From 1; 0 where the problem has no place in the file.
        package var line: Int
        /// From 1, counted in Unicode scalars; 0 where the problem has no place in the file.
        package var column: Int
        /// The text that offends, as it stands in the file.
        package var thing: String
        /// A sentence a person can act on, without file and place.
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

    /// The sort of a problem: stable, for programs.
    package enum Code: String, Hashable, Sendable, CaseIterable {
        /// The file cannot be opened or read.
        case unreadable
        /// There is nothing in it.
        case empty
        /// It is not YAML, JSON or UTF-8.
        case syntax
        /// A key stands twice in one map.
        case duplicateKey
        case unknownKey
        case missingKey
        /// Two keys that exclude each other, or a key where it has no meaning.
        case misplacedKey
        /// A list where a text belongs, and the like.
        case wrongType
        /// The right type, and not a value it may have.
        case invalidValue
        case duplicateOperation
        case unknownOperation
        case dependencyCycle
        case limitExceeded
        /// It can be read, and not be run like this.
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

/// Why reading stops in the middle. Becomes a `GraphFileError` where the file's name is known.
enum Stop: Error {
    /// Nothing after this can be understood.
    case problem(Problem)
    /// `problemsMax` problems are known, and this is one more.
    case enough

    typealias Problem = GraphFileError.Problem
}

/// Collects what is wrong while reading goes on.
struct ProblemLog {
    private(set) var problems: [GraphFileError.Problem] = []

    /// Notes a problem; stops reading when there are too many.
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

    /// What to throw after reading stopped, or `nil` if nothing was wrong.
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
        case nil: break
        }
        guard !all.isEmpty else { return nil }
        for index in all.indices { all[index].file = file }
        return GraphFileError(problems: all, isTruncated: isTruncated)
    }
}

extension GraphFileError.Problem {
    /// A problem whose file is filled in later.
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

    /// A limit that is exceeded by `subject`, for example `the name “aaaa…”`.
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
    /// For messages: at most sixty characters, control characters made visible.
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
