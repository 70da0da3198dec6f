import Foundation

import protocol Operon.Operation
import struct Operon.OperationContext

/// Foundation has a class of this name: imported by name, ours is the one that is meant.
struct ScopedImport: Operation {
    var date: Date

    func main(_ context: OperationContext) async throws -> Date { date }
}
