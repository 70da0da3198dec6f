// snippet: import-bare
import Operon

struct Wave: Operation {
    var name: String

    func main(_ context: OperationContext) async throws -> String { "Hello, \(name)!" }
}
// end

func waves() async throws -> String {
    // snippet: wave
    let queue = OperationQueue(name: "waves")
    let wave = try await queue.addOperation(Wave(name: "Ada"))
    print(try await wave.value)
    // end
    return try await wave.value
}
