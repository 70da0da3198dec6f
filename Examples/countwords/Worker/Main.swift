import Operon

/// Counts how often a word occurs in a text.
struct CountWord: Operation {
    var word: String
    var text: String

    func main(_ context: OperationContext) async throws -> Int {
        context.log("looking for “\(word)”, attempt \(context.attempt)")
        return text.split(separator: " ").count { $0 == word }
    }
}

@main struct Program {
    static func main() async {
        // The variable OPERON_BROKER contains the URL of the broker: amqp://user:password@host/
        await Worker(.on(CountWord.self)).main()
    }
}
