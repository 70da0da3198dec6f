import ArgumentParser

/// The bounds of `--drain-timeout`, which several programs have.
package enum DrainTimeout {
    /// A week: no service manager waits longer for a program to end. A number without a bound
    /// would not fit a clock.
    private static let secondsMax = 604_800

    /// - Throws: `ValidationError` for a number that is negative, too large, or not a number.
    package static func check(_ seconds: Double) throws {
        guard (0...Double(secondsMax)).contains(seconds) else {
            throw ValidationError("--drain-timeout must be from 0 to \(secondsMax) seconds")
        }
    }
}
