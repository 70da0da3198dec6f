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
        } catch let error as OperonError {
            return ["\(error.code)", error.message]
        }
    }
}
