import Foundation
import OperonAMQP
import Testing

/// One list of rights, in three places.
@Suite struct BrokerRightsTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private struct Definitions: Decodable {
        struct Permission: Decodable {
            let user: String
            let configure: String
            let write: String
            let read: String
        }

        let permissions: [Permission]
    }

    /// What `deploy/rabbitmq/definitions` prints.
    private static func definitions(prefix: String) throws -> Definitions {
        let process = Process()
        process.executableURL = root.appendingPathComponent("deploy/rabbitmq/definitions")
        process.environment = [
            "PATH": "/usr/bin:/bin", "OPERON_PREFIX": prefix,
            "OPERON_COORDINATOR_PASSWORD": "a", "OPERON_WORKER_PASSWORD": "b",
        ]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return try JSONDecoder().decode(Definitions.self, from: bytes)
    }

    @Test(arguments: ["operon.", "team-1_(a+b)."])
    func `what doctor recommends is what the definitions grant`(prefix: String) throws {
        let permissions = try Self.definitions(prefix: prefix).permissions
        for role in [BrokerProbe.Role.coordinator, .worker] {
            let granted = try #require(permissions.first { $0.user == "operon-\(role.rawValue)" })
            let rights = BrokerRights(role, prefix: prefix)
            #expect(granted.configure == rights.configure)
            #expect(granted.write == rights.write)
            #expect(granted.read == rights.read)
        }
    }

    @Test func `what doctor recommends is what SECURITY.md lists`() throws {
        let page = Self.root.appendingPathComponent("SECURITY.md")
        let lines = try String(contentsOf: page, encoding: .utf8).split(separator: "\n")
        for role in [BrokerProbe.Role.coordinator, .worker] {
            let rights = BrokerRights(role, prefix: "operon.")
            let cells = [rights.configure, rights.write, rights.read].map {
                "`" + $0.replacing("|", with: "\\|") + "`"
            }
            let row = "| \(role.rawValue) | " + cells.joined(separator: " | ") + " |"
            #expect(lines.contains(Substring(row)))
        }
    }
}
