package import OperonPorts

/// Why a program could not do what was asked: sentences for a person, and an exit code.
package struct Failure: Error {
    package let code: Int32
    package let message: String
    /// For wrong files: each problem that `message` describes.
    package let problems: [Problem]

    /// One problem of a file.
    package struct Problem: Hashable, Sendable, Encodable {
        /// The kind of the problem; programs may rely on it.
        package var code: String
        package var file: String
        /// From 1; `nil`: the problem has no position in the file.
        package var line: Int?
        package var column: Int?
        package var message: String

        package init(code: String, file: String, line: Int?, column: Int?, message: String) {
            (self.code, self.file, self.line, self.column) = (code, file, line, column)
            self.message = message
        }
    }

    package init(_ code: Int32, _ message: String, problems: [Problem] = []) {
        self.code = code
        self.message = message
        self.problems = problems
    }

    /// Why a coordinator cannot continue with its store. `hint` says how to start it again; it is
    /// left out if a later coordinator has taken over.
    package init(_ error: StoreError, hint: String) {
        if error.code == .superseded {
            self.init(ExitStatus.held, error.message)
        } else {
            self.init(ExitStatus.failed, "\(error.message) \(hint)")
        }
    }
}

/// The exit codes that scripts may rely on.
package enum ExitStatus {
    package static let success: Int32 = 0
    package static let failed: Int32 = 1
    package static let usage: Int32 = 2
    package static let cancelled: Int32 = 3
    package static let timedOut: Int32 = 4
    package static let unreachable: Int32 = 5
    package static let noSuchObject: Int32 = 6
    package static let skipped: Int32 = 7
    /// Another process holds a resource that only one process may hold: a prefix, a state
    /// directory.
    package static let held: Int32 = 8
    /// Output was lost. EX_IOERR in sysexits.h.
    package static let outputLost: Int32 = 74
    /// Those with which a run or a wait tells how operations ended. Runs end with `failed` for a
    /// few other reasons, too.
    static let outcomes: Set<Int32> = [success, failed, cancelled, skipped]
    package static let interrupted: Int32 = 130
    package static let terminated: Int32 = 143

    /// The exit code of a program whose connection to the broker failed for good.
    package static func of(_ error: PortError) -> Int32 {
        switch error.code {
        case .invalidAddress: usage
        case .prefixHeld: held
        case .accessRefused, .unreachable, .protocolViolation: unreachable
        }
    }
}
