import Foundation
import Operon

// Module selectors: what stands before the colons is a module, whatever types it has.

struct Selected: Operon::Operation {
    var date: Date

    func main(_ context: OperationContext) async throws -> Date { date }
}

let selectedQueue = Operon::OperationQueue(name: "selected")
