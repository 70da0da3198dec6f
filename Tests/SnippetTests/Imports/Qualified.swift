import Foundation
import Operon

// snippet: import-qualified
struct Qualified: Operon.Operation {
    var date: Date

    func main(_ context: OperationContext) async throws -> Date { date }
}

let qualifiedQueue = Operon.OperationQueue(name: "qualified")
// end
