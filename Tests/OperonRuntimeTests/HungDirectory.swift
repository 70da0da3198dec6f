import Glibc
import Testing

/// A directory on a file system that does not answer: FUSE, with a server that says that it is
/// there and nothing after that. Where it can be had: it needs the rights to mount.
final class HungDirectory {
    let path: String
    private var server: Int32

    /// Whether this machine lets us mount one.
    static let isPossible: Bool = {
        guard let directory = try? HungDirectory() else { return false }
        directory.release()
        return true
    }()

    struct Impossible: Error {}

    init() throws {
        path = ProcessSupport.temporaryFolder()
        server = open("/dev/fuse", O_RDWR | O_CLOEXEC)
        let options = "fd=\(server),rootmode=40000,user_id=\(getuid()),group_id=\(getgid())"
        let flags = UInt(MS_NOSUID | MS_NODEV)
        guard server >= 0, mount("hung", path, "fuse", flags, options) == 0 else {
            if server >= 0 { close(server) }
            rmdir(path)
            throw Impossible()
        }
        greet()
    }

    /// Answers the kernel's first request (FUSE_INIT): from now on requests are sent, and wait.
    private func greet() {
        let request = take()
        var answer = [UInt32](repeating: 0, count: 20)
        answer[0] = 80
        // Behind the length: no error, and the number of the request; then version 7.31.
        answer[2] = request[2]
        answer[3] = request[3]
        answer[4] = 7
        answer[5] = 31
        answer[9] = 4_096  // Bytes of a write at most.
        #expect(write(server, answer, 80) == 80)
    }

    /// Takes a request and leaves it at that: whoever made it cannot even be killed any more.
    @discardableResult
    func take() -> [UInt32] {
        var request = [UInt32](repeating: 0, count: 64 << 10)
        let count = read(server, &request, request.count * 4)
        #expect(count > 0)
        return request
    }

    /// Whether somebody waits for an answer whose request was not taken.
    var isVisited: Bool {
        var polled = pollfd(fd: server, events: Int16(POLLIN), revents: 0)
        return poll(&polled, 1, 0) == 1
    }

    /// Ends the file system: whoever waits for it gets an error.
    func release() {
        guard server >= 0 else { return }
        close(server)
        server = -1
        umount2(path, Int32(MNT_DETACH))
        rmdir(path)
    }

    deinit { release() }
}
