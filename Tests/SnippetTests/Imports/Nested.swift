import Foundation
import Operon

/// Names of one's own, for a program with many files that import Foundation.
enum Jobs {
    typealias Operation = Operon.Operation
    typealias Queue = Operon.OperationQueue
}

struct Nested: Jobs.Operation {
    var date: Date

    func main(_ context: OperationContext) async throws -> Date { date }
}

func nestedQueue() -> Jobs.Queue { Jobs.Queue(name: "nested") }
