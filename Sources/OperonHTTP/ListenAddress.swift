import FoundationEssentials

/// Where a coordinator listens and its clients connect: a socket file, or TCP.
package enum ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// An absolute path.
    case socket(String)
    case tcp(HTTPAddress)

    static let socketPrefix = "unix:"

    /// Reads `unix:PATH`, or the forms that `HTTPAddress` reads. A relative path starts at the
    /// current directory.
    /// - Throws: a sentence that says what the text should be.
    package init(_ text: String) throws(HTTPServerError) {
        let noSocket = HTTPServerError(
            .invalid,
            "“\(text)” names no socket: use unix:PATH, such as unix:/run/operon/operon.sock."
        )
        guard text.hasPrefix(Self.socketPrefix) else {
            let address = try HTTPAddress(text)
            // With its port, the name of such a machine would be that of a socket.
            guard address.host + ":" != Self.socketPrefix else { throw noSocket }
            self = .tcp(address)
            return
        }
        let path = String(text.dropFirst(Self.socketPrefix.count))
        guard !path.isEmpty, path.last != "/", !path.utf8.contains(0) else { throw noSocket }
        if path.first == "/" {
            self = .socket(path)
        } else {
            self = .socket(FileManager.default.currentDirectoryPath + "/" + path)
        }
    }

    package var tcp: HTTPAddress? {
        guard case .tcp(let address) = self else { return nil }
        return address
    }

    /// How a client names a coordinator that listens here.
    package func clientText(isSecure: Bool) -> String {
        guard let tcp else { return description }
        return (isSecure ? "https://" : "http://") + tcp.description
    }

    package var description: String {
        switch self {
        case .socket(let path): Self.socketPrefix + path
        case .tcp(let address): address.description
        }
    }
}

/// The folder for the socket and the token of a user's coordinators. The coordinator, the commands
/// and the library use the same place, so that they find one another without configuration.
package enum StateFolder {
    /// `$XDG_STATE_HOME/operon`, else `~/.local/state/operon`; `nil`: neither variable is set.
    package static func path(_ environment: [String: String]) -> String? {
        if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") {
            return state + "/operon"
        }
        if let home = environment["HOME"], home.hasPrefix("/") {
            return home + "/.local/state/operon"
        }
        return nil
    }

    /// The default socket of a coordinator.
    package static func socket(_ environment: [String: String]) -> String? {
        path(environment).map { $0 + "/operon.sock" }
    }

    /// The file with the token that coordinators of this user require over TCP.
    package static func token(_ environment: [String: String]) -> String? {
        path(environment).map { $0 + "/token" }
    }

    /// Creates the folder, for this user alone, if it does not exist.
    /// - Throws: an error if the folder cannot be created, or if others can write to it.
    package static func make(_ path: String) throws(HTTPServerError) {
        try SafeFolder.make(path)
        try SafeFolder.check(path)
    }
}
