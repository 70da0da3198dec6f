import COperonProcess
import Glibc

/// A user as which a worker runs commands, instead of its own.
///
/// `@unchecked Sendable`: nothing changes the memory that C reads until it is freed.
@safe final class OperationUser: @unchecked Sendable {
    let name: String
    let home: String
    let id: uid_t
    /// For the start of a process, which reads it in C.
    let entry: UnsafeMutablePointer<operon_process_user>

    /// Looks the user up in the databases of the system.
    init(_ name: String) throws(OperationUserError) {
        unsafe entry = .allocate(capacity: 1)
        unsafe entry.initialize(to: operon_process_user())
        let error = unsafe operon_process_find_user(name, entry)
        guard error == 0, let found = unsafe entry.pointee.name,
            let home = unsafe entry.pointee.home
        else {
            unsafe entry.deallocate()
            guard error != ENOENT else { throw OperationUserError("There is no user “\(name)”.") }
            throw OperationUserError(
                "The user “\(name)” cannot be looked up: \(SystemError.text(error))."
            )
        }
        self.name = unsafe String(cString: found)
        self.home = unsafe String(cString: home)
        id = unsafe entry.pointee.user
    }

    deinit {
        unsafe operon_process_free_user(entry)
        unsafe entry.deallocate()
    }

    /// `HOME`, `USER` and `LOGNAME`.
    var variables: [String: String] { ["HOME": home, "USER": name, "LOGNAME": name] }

    /// Uses files with the rights of this user, on the calling thread.
    func act<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        let (user, group) = unsafe (entry.pointee.user, entry.pointee.group)
        let status = unsafe operon_process_act_as(
            user,
            group,
            entry.pointee.groups,
            entry.pointee.group_count
        )
        // It was tried at the start. What failed now would be done with the rights of root.
        precondition(status == 0, "the files of user \(name) cannot be used with its rights")
        defer { Self.actAsRoot() }
        return try body()
    }

    private static func actAsRoot() {
        let status = operon_process_act_as(geteuid(), getegid(), nil, 0)
        precondition(status == 0, "a thread does not get the rights of root back")
    }
}

extension OperationUser? {
    /// Uses files with the rights of the user; of the worker, if there is none.
    func act<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        switch self {
        case .some(let user): try user.act(body)
        case .none: try body()
        }
    }
}

/// The users as which a worker runs commands.
package struct OperationUsers: Sendable {
    /// For queues without a user of their own; `nil`: the worker's own.
    private let common: OperationUser?
    private let ofQueues: [String: OperationUser]

    /// Every command runs as the user of the worker.
    static let none = OperationUsers()

    private init() {
        common = nil
        ofQueues = [:]
    }

    /// The capabilities that root needs for this, as bits: CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_KILL,
    /// CAP_SETGID and CAP_SETUID.
    private static let needed: UInt64 = 1 << 0 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 7

    /// Looks the users up.
    ///
    /// - Parameters:
    ///   - names: Users by the names of queues; that of `nil` is for all other queues.
    ///   - queues: The queues that the worker serves; empty: all.
    /// - Throws: If a user does not exist, a queue would be without one, or the worker has not the
    ///   rights of root.
    package init(
        _ names: [(queue: String?, user: String)],
        serving queues: [String]
    ) throws(OperationUserError) {
        var users: [String: OperationUser] = [:]
        var common: OperationUser?
        var ofQueues: [String: OperationUser] = [:]
        for (queue, name) in names {
            let user: OperationUser
            if let known = users[name] { user = known } else { user = try OperationUser(name) }
            guard user.id != 0 else {
                throw OperationUserError("--run-as \(name): operations do not run as root.")
            }
            users[name] = user
            guard (queue.map { ofQueues[$0] } ?? common) == nil else {
                let what = queue.map { "the queue “\($0)”" } ?? "all queues"
                throw OperationUserError("--run-as gives two users for \(what).")
            }
            if let queue { ofQueues[queue] = user } else { common = user }
        }
        (self.common, self.ofQueues) = (common, ofQueues)
        guard !users.isEmpty else { return }
        let open = queues.first { ofQueues[$0] == nil }
        guard common != nil || (!queues.isEmpty && open == nil) else {
            let queue = open.map { "the queue “\($0)”" } ?? "other queues"
            throw OperationUserError(
                "--run-as has no user for \(queue): add --run-as USER, or name the queues with "
                    + "--queues."
            )
        }
        guard geteuid() == 0, operon_process_capabilities() & Self.needed == Self.needed else {
            throw OperationUserError(
                "--run-as needs a worker that runs as root, with the capabilities CAP_CHOWN, "
                    + "CAP_DAC_OVERRIDE, CAP_KILL, CAP_SETGID and CAP_SETUID."
            )
        }
    }

    package var isEmpty: Bool { common == nil && ofQueues.isEmpty }

    /// All users, each once, by number.
    var all: [OperationUser] {
        var users: [uid_t: OperationUser] = [:]
        for user in ofQueues.values { users[user.id] = user }
        if let common { users[common.id] = common }
        return users.values.sorted { $0.id < $1.id }
    }

    func user(ofQueue queue: String) -> OperationUser? { ofQueues[queue] ?? common }

    /// Why a command of this queue cannot run, as a sentence; `nil`: it can. The coordinator sends
    /// none of a queue that the worker does not serve; if it does, the command is not to run as
    /// root.
    func problem(ofQueue queue: String) -> String? {
        guard !isEmpty, user(ofQueue: queue) == nil else { return nil }
        return "The worker has no user for the queue “\(queue)”."
    }
}

/// Why commands cannot run as other users: a sentence for the person who starts the worker.
package struct OperationUserError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    init(_ message: String) { self.message = message }

    package var description: String { message }
}
