import Operon

/// How often a word is in a text.
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
        // Where the broker is, the variable OPERON_BROKER says: amqp://user:password@host/
        await Worker(.on(CountWord.self)).main()
    }
}
