import Glibc
import OperonModel
import OperonSystem
import OperonWire
import Synchronization

/// The operation socket, through which processes of running operations reach their worker: a socket
/// in the worker's private directory and, for each attempt, a token that ends with the attempt.
///
/// Owned by the `ProcessRunner`. Its only thread waits in `poll` and nowhere else; answers may take
/// as long as the coordinator is away. `@unchecked Sendable`: shared state is locked; only that
/// thread uses everything else.
final class OperationSocket: @unchecked Sendable {
    typealias Handler =
        @Sendable (AttemptID, OperationSocketFormat.Request.What) async ->
        OperationSocketFormat.Answer

    private struct Shared {
        /// By the hash of the token, so that the time that a search takes tells nothing about it.
        var attempts: [[UInt8]: AttemptID] = [:]
        /// The user of the attempt, by the same hash, for attempts that run as another user.
        var users: [[UInt8]: uid_t] = [:]
        var ofAttempt: [AttemptID: [UInt8]] = [:]
        var handler: Handler?
        var answers: [(connection: UInt64, bytes: [UInt8])] = []
        /// Unfinished requests whose connections have closed, by attempt: later requests of the
        /// same attempt are processed after them.
        var dropped: [AttemptID: [Task<Void, Never>]] = [:]
        /// The new listener that replaces the current one.
        var listener: Listener?
        var isClosing = false
    }

    private final class Listener: Sendable {
        let socket: Descriptor

        init(_ socket: consuming Descriptor) { self.socket = socket }
    }

    private final class Connection {
        let id: UInt64
        let socket: Descriptor
        var received: [UInt8] = []
        var isAsked = false
        var answer: [UInt8] = []
        var sent = 0
        /// The connection is to be closed without an answer.
        var isOver = false
        /// The user of the process; `nil`: that was not asked.
        var user: uid_t?
        /// The attempt, and the task that gets its answer; cancelled when the connection closes.
        var asking: (AttemptID, Task<Void, Never>)?

        init(id: UInt64, socket: consuming Descriptor) {
            self.id = id
            self.socket = socket
        }
    }

    /// The number of connections in addition to those that wait for operations; further ones wait
    /// to be accepted.
    private static let connectionsBeside = 128
    private static let readBytes = 65_536
    /// Milliseconds until the next try to accept connections after descriptors ran out: no
    /// notification comes when there are some again.
    private static let shortWait: Int32 = 100

    let path: String
    private let users: [uid_t]
    /// Changed by the socket's own thread only.
    private var listener: Listener
    private let wakeup: Descriptor
    private let shared = Mutex(Shared())
    private let repairing = Mutex(())
    private let requestBytes: Int
    /// Large enough that waiting operations cannot keep out the requests that would end their
    /// waiting.
    private let connectionsMax: Int

    private var connections: [Connection] = []
    private var lastConnection: UInt64 = 0
    private var isShort = false
    private var buffer = [UInt8](repeating: 0, count: OperationSocket.readBytes)

    /// - Parameter users: The users of attempts besides the worker's. Connections of any other user
    ///   are closed.
    init(
        in directory: String,
        users: [uid_t] = [],
        limits: Limits = Limits()
    ) throws(SystemError) {
        path = "\(directory)/worker.sock"
        self.users = users
        requestBytes = limits.additionBytes + OperationSocketFormat.overheadBytes
        connectionsMax = limits.yieldedOperations + Self.connectionsBeside
        listener = Listener(try LocalSocket.listening(at: path, mode: Self.mode(users)))
        wakeup = try Descriptor.wakeup(blocking: false)
        try OwnThread.start("operon-socket") { [self] in work() }
    }

    private static func mode(_ users: [uid_t]) -> mode_t { users.isEmpty ? 0o600 : 0o666 }

    // MARK: - From any thread

    /// Sets the handler that answers requests. Until then no connection is accepted.
    func serve(_ handler: @escaping Handler) {
        shared.withLock { $0.handler = handler }
        wakeup.signal()
    }

    /// Listens at its path again if the socket there was removed.
    func repair() throws(SystemError) {
        // The threads that start processes and the one that writes their inputs may call this at
        // the same time.
        try repairing.withLock { _ throws(SystemError) in
            guard unsafe access(path, F_OK) != 0, errno == ENOENT else { return }
            let listener = Listener(try LocalSocket.listening(at: path, mode: Self.mode(users)))
            shared.withLock { $0.listener = listener }
            wakeup.signal()
        }
    }

    /// Makes the token for an attempt that starts.
    ///
    /// - Parameter user: Only processes of this user, and of the worker's, may use it; `nil`: all
    ///   that can connect.
    func begin(_ attempt: AttemptID, user: uid_t? = nil) -> String {
        var random = SystemRandomNumberGenerator()
        let token =
            Incarnation(rawValue: random.next()).description
            + Incarnation(rawValue: random.next()).description
        let hash = Self.hash(of: token)
        shared.withLock { shared in
            shared.attempts[hash] = attempt
            shared.ofAttempt[attempt] = hash
            shared.users[hash] = user
        }
        return token
    }

    private static func hash(of token: String) -> [UInt8] { SHA256.hash(of: Array(token.utf8)) }

    /// Ends an attempt's token.
    func end(_ attempt: AttemptID) {
        shared.withLock { shared in
            guard let hash = shared.ofAttempt.removeValue(forKey: attempt) else { return }
            shared.attempts[hash] = nil
            shared.users[hash] = nil
            shared.dropped[attempt] = nil
        }
    }

    func close() {
        shared.withLock { $0.isClosing = true }
        wakeup.signal()
    }

    private func answer(_ answer: OperationSocketFormat.Answer, to connection: UInt64) {
        let bytes: [UInt8]
        do throws(WireError) {
            bytes = try OperationSocketFormat.encode(answer)
        } catch {
            bytes = []  // Closed without a word, which the other side understands.
        }
        shared.withLock { $0.answers.append((connection, bytes)) }
        wakeup.signal()
    }

    // MARK: - On its thread

    private func work() {
        while !shared.withLock({ $0.isClosing }) {
            var polled = [pollfd(fd: wakeup.number, events: Int16(POLLIN), revents: 0)]
            for connection in connections {
                let wanted = connection.answer.isEmpty ? POLLIN : POLLOUT
                polled.append(
                    pollfd(fd: connection.socket.number, events: Int16(wanted), revents: 0)
                )
            }
            let isOpen =
                connections.count < connectionsMax && !isShort
                && shared.withLock { $0.handler != nil }
            if isOpen {
                polled.append(pollfd(fd: listener.socket.number, events: Int16(POLLIN), revents: 0))
            }
            _ = unsafe poll(&polled, nfds_t(polled.count), isShort ? Self.shortWait : -1)
            isShort = false
            if polled[0].revents != 0 { takeAnswers() }
            var left: [Connection] = []
            for (place, connection) in connections.enumerated() {
                let isReady = polled[place + 1].revents != 0
                if !connection.isOver, !isReady || serve(connection) {
                    left.append(connection)
                } else {
                    drop(connection)
                }
            }
            let isAsked = isOpen && polled[polled.count - 1].revents != 0
            connections = left
            if isAsked { acceptAll() }
        }
        for connection in connections { drop(connection) }
        connections = []
        _ = unsafe unlink(path)
    }

    private func acceptAll() {
        while connections.count < connectionsMax {
            guard let socket = LocalSocket.accept(listener.socket.number) else {
                isShort = errno == EMFILE || errno == ENFILE
                return
            }
            lastConnection += 1
            let user = users.isEmpty ? nil : LocalSocket.peer(of: socket.number)
            let connection = Connection(id: lastConnection, socket: socket)
            connection.user = user
            // Closed at once: it is of somebody else.
            guard users.isEmpty || user.map({ $0 == geteuid() || users.contains($0) }) == true
            else { continue }
            connections.append(connection)
        }
    }

    private func drop(_ connection: Connection) {
        guard let (attempt, task) = connection.asking else { return }
        task.cancel()
        shared.withLock { shared in
            guard shared.ofAttempt[attempt] != nil else { return }
            shared.dropped[attempt, default: []].append(task)
        }
    }

    private func takeAnswers() {
        wakeup.await()
        let (answers, listener) = shared.withLock { shared in
            defer {
                shared.answers = []
                shared.listener = nil
            }
            return (shared.answers, shared.listener)
        }
        if let listener { self.listener = listener }
        for (id, bytes) in answers {
            // Harmless: the requester did not wait.
            guard let connection = connections.first(where: { $0.id == id }) else { continue }
            connection.answer = bytes
            connection.isOver = bytes.isEmpty
        }
    }

    /// Returns whether the connection stays open.
    private func serve(_ connection: Connection) -> Bool {
        connection.answer.isEmpty ? receive(from: connection) : send(to: connection)
    }

    private func receive(from connection: Connection) -> Bool {
        let number = connection.socket.number
        let count = unsafe buffer.withUnsafeMutableBytes { buffer in
            unsafe Glibc.read(number, buffer.baseAddress, buffer.count)
        }
        if count < 0 { return errno == EAGAIN || errno == EINTR }
        // The process has gone, or it sends more than one request.
        guard count > 0, !connection.isAsked else { return false }
        connection.received += buffer[..<count]
        guard let length = OperationSocketFormat.length(connection.received[...]) else {
            return true
        }
        guard length <= requestBytes else {
            connection.isAsked = true
            answer(.unreadable("it is over \(requestBytes) bytes"), to: connection.id)
            return true
        }
        let end = OperationSocketFormat.lengthBytes + length
        guard connection.received.count >= end else { return true }
        connection.isAsked = true
        ask(Array(connection.received[OperationSocketFormat.lengthBytes..<end]), for: connection)
        connection.received = []
        return true
    }

    private func ask(_ bytes: [UInt8], for connection: Connection) {
        let id = connection.id
        let request: OperationSocketFormat.Request
        do throws(WireError) {
            request = try OperationSocketFormat.decodeRequest(bytes)
        } catch {
            return answer(.unreadable(error.message), to: id)
        }
        let hash = Self.hash(of: request.token)
        let (attempt, handler) = shared.withLock { shared in
            let owner = shared.users[hash]
            let isOwn = owner == nil || connection.user == owner || connection.user == geteuid()
            return (isOwn ? shared.attempts[hash] : nil, shared.handler)
        }
        guard let attempt, let handler else { return answer(.unknownToken, to: id) }
        // An unstructured task: it lives until the worker has answered.
        let before = shared.withLock { $0.dropped.removeValue(forKey: attempt) } ?? []
        let task = Task { [self] in
            for task in before { await task.value }
            answer(await handler(attempt, request.what), to: id)
        }
        connection.asking = (attempt, task)
    }

    private func send(to connection: Connection) -> Bool {
        let number = connection.socket.number
        let sent = connection.sent
        let flags = Int32(MSG_NOSIGNAL)
        let count = unsafe connection.answer.withUnsafeBytes { bytes in
            let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[sent...])
            return unsafe Glibc.send(number, rest.baseAddress, rest.count, flags)
        }
        if count < 0 { return errno == EAGAIN || errno == EINTR }
        connection.sent += count
        return connection.sent < connection.answer.count
    }
}
