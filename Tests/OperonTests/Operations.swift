import Foundation
import Operon

// What the tests run. A few of them meet in a `Meeting`, by which the test sees how far they are.

/// Lets operations and tests wait for one another, in this process.
final class Meeting: @unchecked Sendable {
    // Protects everything below.
    private let condition = NSCondition()
    private var arrivals = 0
    private var isOver = false

    private static let lock = NSLock()
    nonisolated(unsafe) private static var meetings: [String: Meeting] = [:]

    /// The meeting of this name; made when it is first asked for.
    static subscript(name: String) -> Meeting {
        lock.withLock {
            let meeting = meetings[name] ?? Meeting()
            meetings[name] = meeting
            return meeting
        }
    }

    /// Blocks the thread until so many have come. Returns whether they have, within a time.
    func meet(_ count: Int) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        arrivals += 1
        condition.broadcast()
        let deadline = Date() + 120
        while arrivals < count {
            guard condition.wait(until: deadline) else { return false }
        }
        return true
    }

    /// Arrives, and blocks the thread until it is over.
    func attend() {
        condition.lock()
        defer { condition.unlock() }
        arrivals += 1
        condition.broadcast()
        while !isOver { condition.wait() }
    }

    func end() {
        condition.lock()
        isOver = true
        condition.broadcast()
        condition.unlock()
    }

    var count: Int { condition.withLock { arrivals } }

    private var names: [String] = []

    func sign(_ name: String) { condition.withLock { names.append(name) } }

    /// Who has signed, in this order.
    var signed: [String] { condition.withLock { names } }
}

struct Square: Operon.Operation {
    var number: Int

    func main(_ context: OperationContext) async throws -> Int { number * number }
}

/// Adds up what it depends on.
struct Sum: Operon.Operation {
    func main(_ context: OperationContext) async throws -> Int {
        try context.dependencies.reduce(0) { try $0 + context.output(of: $1, as: Int.self) }
    }
}

/// Returns nothing, under a name of its own.
struct Greet: Operon.Operation {
    static let kind = "greet.v1"

    var name: String

    func main(_ context: OperationContext) async throws {
        context.log("Hello, \(name)!")
        context.log("I am \(context.operationName) of \(context.graphName) in \(context.queueName)")
    }
}

/// Tells what it learns of its dependencies.
struct Ask: Operon.Operation {
    var dependency: String

    func main(_ context: OperationContext) async throws -> [String] {
        var answers: [String] = []
        answers.append("\(try context.output(of: dependency, as: Int?.self) as Any)")
        do {
            answers.append("\(try context.output(of: dependency, as: Int.self))")
        } catch {
            answers.append("\((error as? OperonError)?.code.description ?? "?") \(error)")
        }
        do {
            answers.append("\(try context.output(of: "nobody", as: Int.self))")
        } catch {
            answers.append("\((error as? OperonError)?.code.description ?? "?") \(error)")
        }
        return answers
    }
}

struct Fail: Operon.Operation {
    struct Sorry: Error, Codable, CustomStringConvertible {
        var reason: String
        var description: String { "because of \(reason)" }
    }

    struct Plain: Error {}

    var how: String

    func main(_ context: OperationContext) async throws {
        switch how {
        case "encodable": throw Sorry(reason: "rain")
        case "cancellation": throw CancellationError()
        case "long": throw Sorry(reason: String(repeating: "é", count: 10_000))
        default: throw Plain()
        }
    }
}

/// Returns so many bytes, as JSON and without the quotes.
struct Large: Operon.Operation {
    var bytes: Int

    func main(_ context: OperationContext) async throws -> String {
        String(repeating: "x", count: bytes)
    }
}

/// Waits until it is asked to stop, and then ends as it is told.
struct Wait: Operon.Operation {
    var then: String

    func main(_ context: OperationContext) async throws -> String {
        context.log("waiting")
        do {
            try await Task.sleep(for: .seconds(600))
        } catch {
            guard context.isCancelled else { return "nobody asked" }
        }
        switch then {
        case "throw": try context.checkCancellation()
        case "fail": throw Fail.Sorry(reason: "haste")
        default: break
        }
        return "stopped"
    }
}

/// Blocks its thread until so many are there.
struct Meet: Operon.Operation {
    var meeting: String
    var count: Int

    func main(_ context: OperationContext) async throws -> Bool { Meeting[meeting].meet(count) }
}

/// Blocks its thread until the test ends the meeting.
struct Attend: Operon.Operation {
    var meeting: String

    func main(_ context: OperationContext) async throws { Meeting[meeting].attend() }
}

/// Does several things at once.
struct Fork: Operon.Operation {
    var meeting: String

    func main(_ context: OperationContext) async throws -> Bool {
        let meeting = Meeting[meeting]
        async let one = meeting.meet(2)
        async let other = meeting.meet(2)
        let both = await (one, other)
        return both.0 && both.1
    }
}

/// Adds two of itself, down to a depth, and waits for them.
struct Tree: Operon.Operation {
    var depth: Int

    func main(_ context: OperationContext) async throws -> [String] {
        guard depth > 0 else { return [] }
        let names = (0..<2).map { "\(context.operationName).\($0)" }
        let added = try await context.add(
            try names.map { try NewOperation(Tree(depth: depth - 1), named: $0) }
        )
        let ends = try await context.wait(for: names)
        return ["\(added)"] + ends.map { "\($0)" }
    }
}

/// Waits for others.
struct Await: Operon.Operation {
    var names: [String]

    func main(_ context: OperationContext) async throws -> [String] {
        context.log("waiting")
        do {
            return try await context.wait(for: names).map { "\($0)" }
        } catch let error as Refusal {
            return ["refused", "\(error)"]
        }
    }
}

/// Holds, and brings an operation that must have succeeded before.
struct Prepared: Condition {
    func dependency() -> AnyOperationHandle? {
        GroupHandle([OperationHandle(Square(number: 2)), OperationHandle(Square(number: 3))])
    }

    func evaluate(_ context: OperationContext) async throws -> ConditionResult { .satisfied }
}

/// Returns its attempt and its queue, from the second attempt on.
struct Second: Operon.Operation {
    var options: OperationOptions { OperationOptions(retry: RetryPolicy(limit: 1)) }

    private enum CodingKeys: CodingKey {}

    func main(_ context: OperationContext) async throws -> [String] {
        if context.attempt == 1 { throw Fail.Plain() }
        return ["\(context.attempt)", context.queueName]
    }
}

/// Returns what it depends on.
struct Careful: Operon.Operation {
    var conditions: [any Condition] { [Prepared()] }

    private enum CodingKeys: CodingKey {}

    func main(_ context: OperationContext) async throws -> [String] { context.dependencies }
}

/// Writes its name down.
struct Sign: Operon.Operation {
    var list: String

    func main(_ context: OperationContext) async throws {
        Meeting[list].sign(context.operationName)
    }
}

/// Adds operations with everything that can be said of them.
struct Grow: Operon.Operation {
    var list: String

    func main(_ context: OperationContext) async throws -> [String] {
        let added = try await context.add([
            try NewOperation(Fail(how: "plain"), named: "bad"),
            try NewOperation(Sign(list: list), named: "if it fails").after("bad", when: .failed),
            try NewOperation(Sign(list: list), named: "unless it fails", after: ["bad"]),
            try NewOperation(Second(), named: "second"),
            try NewOperation(Careful(), named: "careful"),
            NewOperation(
                command: ["/bin/sleep", "600"],
                named: "slow",
                options: OperationOptions(timeout: .milliseconds(10))
            ),
        ])
        try await context.addOperation(Sign(list: list), named: "low", priority: .low)
        var high = OperationOptions()
        high.queuePriority = .high
        try await context.addOperation(Sign(list: list), named: "high", options: high)
        do {
            try await context.addOperation(Second(), named: "low")
            return ["it was added twice"]
        } catch Refusal.duplicateOperation(let name) {
            return ["\(added)", name]
        }
    }
}

/// Adds others, waits for them, and tells what it learns of them.
struct Family: Operon.Operation {
    func main(_ context: OperationContext) async throws -> [String] {
        try await context.add([
            try NewOperation(Square(number: 3), named: "square"),
            try NewOperation(Large(bytes: 500_000), named: "large"),
            try NewOperation(Greet(name: "you"), named: "silent"),
            try NewOperation(Fail(how: "plain"), named: "failing"),
            try NewOperation(Square(number: 4), named: "later", after: [context.operationName]),
        ])
        try await context.wait(for: ["square", "large", "silent", "failing"])
        var answers = ["\(try await context.value(of: "square", as: Int.self))"]
        answers.append("\(try await context.value(of: "large", as: String.self).count)")
        for name in ["silent", "failing"] {
            let none = try await context.value(of: name, as: Int?.self)
            answers.append(none.map { "\($0)" } ?? "nothing")
            do {
                answers.append("\(try await context.value(of: name, as: Int.self))")
            } catch let error as OperonError {
                answers.append("\(error.code)")
            }
        }
        do {
            answers.append(try await context.value(of: "square", as: String.self))
        } catch let error as OperonError {
            answers.append("\(error.code)")
        }
        do {
            answers.append(try await context.value(of: "later"))
        } catch Refusal.invalid(let field, _) {
            answers.append(field)
        }
        do {
            answers.append(try await context.value(of: "nobody"))
        } catch Refusal.unknownOperation(let name, let reader) {
            answers.append("\(name) \(reader)")
        }
        return answers
    }

    static func answers(_ name: String) -> [String] {
        [
            "9", "500000", "nothing", "noOutput", "nothing", "noOutput", "undecodable", "output",
            "nobody \(name)",
        ]
    }
}

/// Makes a file with two commands, one after the other, and returns which of them left an output: a
/// process that was not started leaves none.
struct Remake: Operon.Operation {
    let folder: String

    func main(_ context: OperationContext) async throws -> [String] {
        var makers: [String] = []
        for name in ["first", "second"] {
            let command = NewOperation(
                command: ["/bin/sh", "-c", "touch made; echo 1 > $OPERON_OUTPUT"],
                named: name,
                directory: folder,
                produces: ["made"],
                consumes: ["/bin/sh"],
                skipsIfUpToDate: true
            )
            try await context.add([command])
            try await context.wait(for: [name])
            if try await context.value(of: name, as: Int?.self) != nil { makers.append(name) }
        }
        return makers
    }
}

/// Runs commands with and without a quality of service, and returns how nice they were.
struct Niceness: Operon.Operation {
    func main(_ context: OperationContext) async throws -> [Int] {
        var values: [Int] = []
        for quality in [Operon.QualityOfService.default, .utility] {
            var options = OperationOptions()
            options.qualityOfService = quality
            let command = NewOperation(
                command: ["/bin/sh", "-c", "nice > $OPERON_OUTPUT"],
                named: quality.name,
                options: options
            )
            try await context.add([command])
            try await context.wait(for: [quality.name])
            values.append(try await context.value(of: quality.name))
        }
        return values
    }
}
