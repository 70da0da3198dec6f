package import ArgumentParser
package import OperonRuntime
package import OperonTrust

/// Whether a coordinator and its workers seal what they say over the broker, and by which keys.
package struct CoordinatorTrustArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The directory with the keys by which workers know this coordinator, or none.",
            discussion: """
                Default: the variable OPERON_TRUST, else operon/trust in $XDG_CONFIG_HOME or \
                ~/.config, where keys are made if there are none. With none, messages on the \
                broker are neither secret nor authentic.
                """,
            valueName: "directory"
        ),
        completion: .directory
    )
    package var trust: String?

    package init() {}

    package func validate() throws {
        if let trust, trust.isEmpty { throw ValidationError("the path of --trust is empty") }
    }

    /// - Parameter say: Receives sentences for the user.
    /// - Throws: `Failure` for keys that cannot be used.
    package func keys(
        environment: [String: String],
        say: (String) -> Void
    ) throws(Failure) -> CoordinatorTrust? {
        do throws(TrustError) {
            return try TrustChoice.coordinator(trust, environment: environment, say: say)
        } catch {
            throw Failure(ExitStatus.usage, error.message)
        }
    }
}

/// Whether a worker and its coordinator seal what they say over the broker, and whom it trusts.
package struct WorkerTrustArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The file with the token with which this worker joins, or none.",
            discussion: """
                “operon trust token” prints a token. Default: the variable OPERON_TRUST, which may \
                be the token itself; else that of this user's own coordinator, in operon/trust in \
                $XDG_CONFIG_HOME or ~/.config. With none, messages on the broker are neither \
                secret nor authentic.
                """,
            valueName: "file"
        ),
        completion: .file()
    )
    package var trust: String?

    package init() {}

    package func validate() throws {
        if let trust, trust.isEmpty { throw ValidationError("the path of --trust is empty") }
        if let trust, JoinToken.isToken(trust) {
            throw ValidationError(
                "all users of the machine can read a token on the command line: put it into a "
                    + "file, or into the variable OPERON_TRUST"
            )
        }
    }

    /// - Parameter say: Receives sentences for the user.
    /// - Throws: `Failure` if there is no token.
    package func token(
        environment: [String: String],
        say: (String) -> Void
    ) throws(Failure) -> JoinToken? {
        do throws(TrustError) {
            return try TrustChoice.worker(trust, environment: environment, say: say)
        } catch {
            throw Failure(ExitStatus.usage, error.message)
        }
    }
}
