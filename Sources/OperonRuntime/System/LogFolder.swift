import Glibc

/// A directory in which a program keeps logs. Other users may be able to write there, too, so links
/// in it are never followed: the directory is opened once, and only files that this object has made
/// are written. The path itself may be a link, because the user of the program chose it.
package final class LogFolder: Sendable {
    /// A sentence for the user.
    package struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
        package let message: String
        package var description: String { message }

        fileprivate init(_ error: SystemError) { message = "\(error)" }
    }

    private let directory: Descriptor

    package init(path: String) throws(Failure) {
        let number = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else { throw Failure(.current("opening \(path)")) }
        directory = Descriptor(owning: number)
    }

    /// Makes a file of this name with these bytes. Removes any earlier entry of this name: a log of
    /// an earlier run, or a link, whose target stays unchanged.
    package func replace(_ name: String, with bytes: some Sequence<UInt8>) throws(Failure) {
        do throws(SystemError) {
            if unsafe unlinkat(directory.number, name, 0) != 0, errno != ENOENT {
                throw .current("removing \(name)")
            }
            // If another user has put a link there again, the write is refused.
            try write(name, O_CREAT | O_EXCL, Array(bytes))
        } catch {
            throw Failure(error)
        }
    }

    /// Appends to a file that `replace` made.
    package func append(_ bytes: [UInt8], to name: String) throws(Failure) {
        do throws(SystemError) {
            try write(name, O_APPEND, bytes)
        } catch {
            throw Failure(error)
        }
    }

    private func write(
        _ name: String,
        _ mode: Int32,
        _ bytes: [UInt8]
    ) throws(SystemError) {
        // Without O_NONBLOCK, opening a pipe that another user put there would wait for a reader.
        let flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | mode
        let number = unsafe openat(directory.number, name, flags, 0o666)
        guard number >= 0 else { throw .current("opening \(name)") }
        let file = Descriptor(owning: number)
        var facts = stat()
        guard unsafe fstat(file.number, &facts) == 0 else { throw .current("looking at \(name)") }
        // A file with a second name may be another user's file.
        guard facts.st_mode & S_IFMT == S_IFREG, facts.st_nlink == 1 else {
            throw SystemError(doing: "writing \(name)", code: EPERM)
        }
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { bytes in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[written...])
                return unsafe Glibc.write(file.number, rest.baseAddress, rest.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .current("writing \(name)") }
            written += count
        }
    }
}
