import Foundation
import Operon

/// Names of one's own, for a program with many files that import Foundation.
enum Remote {
    typealias Operation = Operon.Operation
    typealias Queue = Operon.OperationQueue
}

struct Nested: Remote.Operation {
    var date: Date

    func main(_ context: OperationContext) async throws -> Date { date }
}

func nestedQueue() -> Remote.Queue { Remote.Queue(name: "nested") }
