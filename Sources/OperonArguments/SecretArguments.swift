import ArgumentParser
package import OperonRuntime

/// Where a worker finds the values of secrets.
package struct SecretArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A directory with a file for each secret, for commands that refer to secrets.",
            discussion: """
                The name of the file is the name of the secret; its text, without one newline at \
                its end, is the value, at most 64 KiB. Other users may have no rights to it. The \
                credentials of systemd ($CREDENTIALS_DIRECTORY) are used as well, without an option.
                """,
            valueName: "directory"
        ),
        completion: .directory
    )
    private var secrets: String?

    @Option(
        help: ArgumentHelp(
            "A program that prints the value of a secret, for secrets without a file.",
            discussion: """
                It gets the name of the secret as its only argument. An exit code other than 0, or \
                more than 10 seconds, fails the operation. What it prints on standard error is \
                logged.
                """,
            valueName: "path"
        ),
        completion: .file()
    )
    private var secretsProgram: String?

    package init() {}

    package func validate() throws {
        if secrets?.isEmpty == true { throw ValidationError("the path of --secrets is empty") }
        guard let secretsProgram, !secretsProgram.hasPrefix("/") else { return }
        throw ValidationError("--secrets-program must be an absolute path")
    }

    /// The places that the options and the environment name.
    package func places(_ environment: [String: String]) -> SecretPlaces {
        var places = SecretPlaces()
        places.directory = secrets
        places.program = secretsProgram
        let credentials = environment[SecretPlaces.credentialsVariable]
        places.credentials = credentials.flatMap { $0.isEmpty ? nil : $0 }
        return places
    }

    /// - Throws: What a person reads who gave them although operations run elsewhere.
    package func checkUnused() throws {
        guard secrets != nil || secretsProgram != nil else { return }
        throw ValidationError(
            "--secrets and --secrets-program are of a worker: with a broker, give them to "
                + "operon-worker"
        )
    }
}
