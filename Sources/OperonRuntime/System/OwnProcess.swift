import COperonProcess
import Glibc
import NIOConcurrencyHelpers

/// What this process is and was given.
package enum OwnProcess {
    package static var id: Int32 { getpid() }

    static var parentID: Int32 { getppid() }

    /// Behind the program's name.
    package static var arguments: [String] { Array(CommandLine.arguments.dropFirst()) }

    /// What it was called as, without its directory.
    package static var programName: String {
        let path = CommandLine.arguments.first ?? ""
        return path.split(separator: "/").last.map(String.init) ?? "program"
    }

    /// The name of the machine.
    package static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&name, name.count - 1) == 0 else { return "unknown host" }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// How many processors this process may use; at least 1.
    package static var processorCount: Int {
        max(1, Int(operon_process_processors()))
    }

    /// The variables as they are now.
    package static var environment: [String: String] {
        var environment: [String: String] = [:]
        guard var next = unsafe operon_process_environment() else { return [:] }
        while let line = unsafe next.pointee {
            let text = unsafe String(cString: line)
            if let equals = text.firstIndex(of: "="), equals > text.startIndex {
                environment[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            unsafe next += 1
        }
        return environment
    }

    /// Where the broker is, with a password: not for operations.
    package static let brokerVariable = "OPERON_BROKER"

    /// The soft limit of descriptors becomes the hard one, but not for what is started from here.
    package static func raiseDescriptors() { operon_process_raise_descriptors() }

    /// From here on no other process of this user reads the memory and the environment of this one,
    /// and no core file has them. But one that an operation runs stays visible: the guard knows
    /// what it has to end by its environment.
    package static func conceal() {
        guard environment[ProcessEnvironment.inputs] == nil else { return }
        operon_process_conceal()
    }

    /// From here on SIGINT and SIGTERM end this process as they end any other.
    package static func endAtSignals() {
        for number in [SIGINT, SIGTERM] { _ = signal(number, SIG_DFL) }
    }

    private static let secrets = NIOLockedValueBox<[String: String]>([:])

    /// The value of a variable that others must not see; with the first call it is taken out of the
    /// environment, where every process of this user can read it. `nil`: there is none.
    package static func secret(_ name: String) -> String? {
        secrets.withLockedValue { secrets in
            if let taken = unsafe operon_process_take_variable(name) {
                let value = unsafe String(cString: taken)
                unsafe free(taken)
                if !value.isEmpty { secrets[name] = value }
            }
            return secrets[name]
        }
    }

    /// The program that runs here; the very same, even if its file was replaced meanwhile.
    static var executable: String {
        let link = "/proc/self/exe"
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = unsafe readlink(link, &path, path.count)
        guard count > 0, count < path.count else { return link }
        let name = String(decoding: path[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
        // The kernel says so of what was replaced. Whoever is named so is run through the link.
        return name.hasSuffix(" (deleted)") ? link : name
    }

    /// From here on each line goes out when it is printed.
    static func printLines() { operon_process_print_lines() }

    /// Writes all of it to the standard output.
    static func print(_ bytes: [UInt8]) { _ = write(bytes, to: STDOUT_FILENO) }

    /// Whether it could.
    static func write(_ bytes: [UInt8], to number: Int32) -> Bool {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(number, buffer.baseAddress! + written, buffer.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return false }
            written += count
        }
        return true
    }

    /// Ends this process by a signal that it handled so far.
    package static func end(by number: Int32) -> Never {
        fflush(nil)
        signal(number, SIG_DFL)
        _ = kill(getpid(), number)
        // It may be delivered to another thread, a moment later.
        while true { pause() }
    }

    /// Ends this process, and what its threads are at with it: only what was printed is kept.
    package static func end(failed message: String? = nil) -> Never {
        if let message { _ = write(Array((message + "\n").utf8), to: STDERR_FILENO) }
        fflush(nil)
        _exit(message == nil ? EXIT_SUCCESS : EXIT_FAILURE)
    }
}
