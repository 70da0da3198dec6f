import FoundationEssentials
import Operon

/// Dates, data and JSON come from there, and no second `Operation`.
struct Bare: Operation {
    var date: Date

    func main(_ context: OperationContext) async throws -> Date { date }
}

func bareQueue() -> OperationQueue { OperationQueue(name: "bare") }
