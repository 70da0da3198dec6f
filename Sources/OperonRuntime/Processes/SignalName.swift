import Glibc

/// The usual names of signals.
package enum SignalName {
    /// Linux numbers on the architectures that Swift runs on (signal(7), column "x86/ARM").
    private static let names = [
        1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT",
        7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2",
        13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 16: "SIGSTKFLT", 17: "SIGCHLD",
        18: "SIGCONT", 19: "SIGSTOP", 20: "SIGTSTP", 21: "SIGTTIN", 22: "SIGTTOU", 23: "SIGURG",
        24: "SIGXCPU", 25: "SIGXFSZ", 26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH", 29: "SIGIO",
        30: "SIGPWR", 31: "SIGSYS",
    ]

    /// The first real-time signal that the kernel knows.
    private static let firstRealTime = 32

    /// `SIGSEGV`; `SIGRT+3` for a real-time signal, counted from the kernel's first.
    package static func of(_ number: Int32) -> String {
        names[Int(number)] ?? "SIGRT+\(Int(number) - firstRealTime)"
    }

    /// The number of a name that `of` gives; `nil` for any other text.
    package static func number(of name: String) -> Int32? {
        if let number = names.first(where: { $0.value == name })?.key { return Int32(number) }
        let prefix = "SIGRT+"
        guard name.hasPrefix(prefix), let offset = UInt8(name.dropFirst(prefix.count)) else {
            return nil
        }
        return Int32(firstRealTime) + Int32(offset)
    }
}
