import Foundation

/// The URLs with which the two sides log in to one broker: each as the user that has its rights and
/// no more.
package struct BrokerUsers: Hashable, Sendable {
    package let coordinator: String
    package let worker: String

    /// A broker that scripts/lib/broker.sh started, or a way to it. It has a user for each side,
    /// and whichever of its users a URL names, each side logs in as its own. A user that is not
    /// one of them logs in on both.
    package init(url: String) {
        coordinator = Self.url(url, for: "coordinator")
        worker = Self.url(url, for: "worker")
    }

    /// The broker of all tests: `OPERON_TEST_BROKER`, and `OPERON_TEST_WORKER_BROKER` if workers
    /// have a user of their own there. scripts/test sets both.
    package init(environment: [String: String] = ProcessInfo.processInfo.environment) throws {
        guard let url = environment["OPERON_TEST_BROKER"] else {
            throw BrokerFixtureError(
                "OPERON_TEST_BROKER is not set: scripts/test starts a broker and sets it"
            )
        }
        coordinator = url
        worker = environment["OPERON_TEST_WORKER_BROKER"] ?? url
    }

    /// What is named, or else the broker of all tests.
    package init(_ url: String?) throws {
        if let url { self.init(url: url) } else { try self.init() }
    }

    private static func url(_ url: String, for side: String) -> String {
        for user in ["guest", "coordinator", "worker"] {
            let login = "://\(user):\(user)@"
            if url.contains(login) {
                return url.replacingOccurrences(of: login, with: "://\(side):\(side)@")
            }
        }
        return url
    }
}
