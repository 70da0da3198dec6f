// snippet: import-scoped
import Foundation
import Operon

import protocol Operon.Operation
import class Operon.OperationQueue

// end

struct Scoped: Operation {
    var date: Date

    func main(_ context: OperationContext) async throws -> Date { date }
}

func scopedQueue() -> OperationQueue { OperationQueue(name: "scoped") }
