package import OperonTrust

/// What a user says about trust: a path, “none”, or nothing.
package enum TrustChoice {
    /// The environment variable that says it if no option does.
    package static let variable = "OPERON_TRUST"
    /// By which a user does without.
    package static let none = "none"

    /// The keys of a coordinator; `nil`: messages are sent in clear.
    ///
    /// - Parameters:
    ///   - given: The path of a directory that has keys, or `none`. `nil`: the variable; else the
    ///     standard directory of this user, which gets keys if it has none.
    ///   - say: Receives sentences for the user.
    /// - Throws: `TrustError` for a directory that cannot be used.
    package static func coordinator(
        _ given: String?,
        environment: [String: String],
        say: (String) -> Void
    ) throws(TrustError) -> CoordinatorTrust? {
        if let path = given ?? named(environment) {
            guard path != none else {
                say(
                    "warning: messages are not sealed (--trust none): whoever can use the broker "
                        + "can read them, and can run commands on the workers"
                )
                return nil
            }
            guard !JoinToken.isToken(path) else {
                throw TrustError(
                    "A join token is for workers: name the coordinator's directory of keys with "
                        + "--trust DIRECTORY."
                )
            }
            return try CoordinatorTrust(TrustDirectory(path: path))
        }
        guard let directory = TrustDirectory.standard(environment) else {
            throw TrustError(
                "There is no home directory for the coordinator's keys: name a directory "
                    + "with --trust DIRECTORY, and make the keys with “operon trust init”."
            )
        }
        let made = try directory.keysMadeIfMissing()
        if made.areNew {
            say(
                "made keys in \(directory.path); “operon trust token” prints what workers of other "
                    + "users and machines need to join"
            )
        }
        return try CoordinatorTrust(directory)
    }

    /// The token with which a worker joins; `nil`: messages are sent in clear.
    ///
    /// - Parameter given: A token, or the path of a file with one, or of a directory of keys, or
    ///   `none`. `nil`: the variable, whose value operations cannot read; else the file `join` in
    ///   the standard directory of this user.
    /// - Throws: `TrustError` if there is no token.
    package static func worker(
        _ given: String?,
        environment: [String: String],
        say: (String) -> Void
    ) throws(TrustError) -> JoinToken? {
        if let path = given ?? named(environment) {
            guard path != none else {
                say(
                    "warning: messages are not sealed (--trust none): whoever can use the broker "
                        + "can run commands on this worker"
                )
                return nil
            }
            if JoinToken.isToken(path) { return try JoinToken(text: path) }
            return try JoinToken.read(path)
        }
        guard let directory = TrustDirectory.standard(environment), try directory.keys() != nil
        else {
            throw TrustError(
                "This worker has no join token: run “operon trust token” where the coordinator "
                    + "runs, save what it prints in a file, and name that with --trust FILE."
            )
        }
        return try JoinToken.read(directory.joinFile)
    }

    private static func named(_ environment: [String: String]) -> String? {
        environment[variable].flatMap { $0.isEmpty ? nil : $0 }
    }
}
