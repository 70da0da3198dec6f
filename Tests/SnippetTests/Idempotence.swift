import FoundationEssentials
import Operon
import Testing

// snippet: errors
struct Declined: Error, Codable, Equatable {
    var order: Int
}

struct Charge: Operation {
    static let errors: [any (Error & Codable).Type] = [Declined.self]

    var order: Int
    var amount: Int

    func main(_ context: OperationContext) async throws -> Int {
        guard amount > 0 else { throw Declined(order: order) }
        // The same key at every attempt: whoever is charged twice under it is charged once.
        return try await Bank.shared.charge(amount, key: "order-\(order)")
    }
}
// end

// snippet: whole
struct Write: Operation {
    var path: String
    var text: String

    func main(_ context: OperationContext) async throws {
        // Under another name first: nobody reads half a file, and the last attempt wins whole.
        try Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
    }
}
// end

// snippet: options
struct Fetch: Operation {
    var url: String

    var options: OperationOptions {
        OperationOptions(
            timeout: .seconds(30),
            retry: RetryPolicy(limit: 3, delay: .seconds(2)),
            exclusive: ["proxy"]
        )
    }

    func main(_ context: OperationContext) async throws -> String { "the text of \(url)" }
}
// end

// snippet: fence
/// A service that remembers the largest attempt it has seen of each order.
actor Ledger {
    private var attempts: [Int: Int] = [:]

    func write(order: Int, attempt: Int) throws {
        guard attempt >= attempts[order, default: 0] else { throw Outdated() }
        attempts[order] = attempt
    }

    struct Outdated: Error {}
}
// end

/// Charges once per key.
actor Bank {
    static let shared = Bank()
    private var charges: [String: Int] = [:]

    func charge(_ amount: Int, key: String) throws -> Int {
        if let known = charges[key] { return known }
        charges[key] = amount
        return amount
    }
}

@Suite struct Idempotence {
    @Test func errorsArriveEqual() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        // snippet: catch
        let charge = try await queue.addOperation(Charge(order: 7, amount: 0))
        do {
            print("charged", try await charge.value)
        } catch let error as Declined {
            print("order \(error.order) was declined")
        }
        // end
        await #expect(throws: Declined(order: 7)) { try await charge.value }
        await cluster.close()
    }

    @Test func onceForTwoAttempts() async throws {
        let charge = Charge(order: 8, amount: 5)
        #expect(try await charge.main(.local) == 5)
        #expect(try await charge.main(.local(attempt: 2, outputs: [:])) == 5)
    }

    @Test func anOlderAttemptIsRefused() async throws {
        let ledger = Ledger()
        try await ledger.write(order: 1, attempt: 2)
        await #expect(throws: Ledger.Outdated.self) {
            try await ledger.write(order: 1, attempt: 1)
        }
    }

    @Test func writesWhole() async throws {
        let folder = FileManager.default.temporaryDirectory
        let file = folder.appending(path: "operon-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try await Write(path: file.path, text: "whole").main(.local)
        #expect(try String(contentsOf: file, encoding: .utf8) == "whole")
    }

    @Test func theOptionsArePlain() {
        #expect(Fetch(url: "x").options.retry.limit == 3)
    }
}
