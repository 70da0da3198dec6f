import Glibc

/// The keys that somebody presses at the terminal of this process. As long as it exists, the
/// terminal gives each key at once and shows none of them; Ctrl-C is still a signal.
package final class TerminalInput: Sendable {
    private let before: termios
    /// What was typed, in pieces as it came. It ends with standard input.
    package let pieces: AsyncStream<[UInt8]>

    /// `nil`: standard input is no terminal.
    package init?() {
        var settings = termios()
        guard unsafe tcgetattr(STDIN_FILENO, &settings) == 0 else { return nil }
        before = settings
        settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
        // Ctrl-S would stop the screen.
        settings.c_iflag &= ~tcflag_t(IXON)
        // A program that is stopped, or ends at once, would leave its screen to the shell.
        unsafe withUnsafeMutableBytes(of: &settings.c_cc) { characters in
            unsafe characters[Int(VSUSP)] = 0
            unsafe characters[Int(VQUIT)] = 0
            unsafe characters[Int(VMIN)] = 1
            unsafe characters[Int(VTIME)] = 0
        }
        guard unsafe tcsetattr(STDIN_FILENO, TCSADRAIN, &settings) == 0 else { return nil }
        let (pieces, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        self.pieces = pieces
        do throws(SystemError) {
            // The thread waits for keys until the process ends.
            try OwnThread.start("operon-input") {
                var buffer = [UInt8](repeating: 0, count: 256)
                while true {
                    let count = unsafe read(STDIN_FILENO, &buffer, buffer.count)
                    if count < 0, errno == EINTR { continue }
                    guard count > 0 else { break }
                    continuation.yield(Array(buffer[..<count]))
                }
                continuation.finish()
            }
        } catch {
            restore()
            return nil
        }
    }

    /// Gives the terminal back as it was.
    package func restore() {
        var settings = before
        _ = unsafe tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
    }
}
