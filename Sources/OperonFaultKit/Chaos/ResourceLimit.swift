import Glibc

/// A limit of a running process, lowered to what it uses now and put back later.
package struct ResourceLimit: Sendable {
    package enum Resource: String, Sendable {
        case descriptors = "--nofile"
        case memory = "--as"
    }

    private let process: Int32
    private let resource: Resource
    /// A number, or `unlimited`.
    private let before: String

    /// Lowers the limit: the process gets no more than it has.
    package init(_ resource: Resource, of process: Int32) async throws {
        self.process = process
        self.resource = resource
        before = try await SystemTool.run(
            "prlimit",
            "--pid=\(process)",
            resource.rawValue,
            "--raw",
            "--noheadings",
            "--output=SOFT"
        )
        let used =
            switch resource {
            case .descriptors: try ProcessFacts.descriptorCount(process)
            case .memory: try ProcessFacts.virtualBytes(process)
            }
        try await set("\(used)")
    }

    /// Puts the limit back, if the process is still there.
    package func lift() async throws {
        do {
            try await set(before)
        } catch let error as CommandFailure {
            guard kill(process, 0) != 0 else { throw error }
        }
    }

    /// Only the soft limit: an unprivileged process cannot raise the other one again.
    private func set(_ value: String) async throws {
        try await SystemTool.run("prlimit", "--pid=\(process)", "\(resource.rawValue)=\(value):")
    }
}
