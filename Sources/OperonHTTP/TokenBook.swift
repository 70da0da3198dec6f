package import OperonModel
import OperonPorts
import Synchronization

/// All tokens that a coordinator knows, and what each shown token means now.
///
/// Sessions and streams ask again, so that a token that expired or is gone ends them as well.
package final class TokenBook: Sendable {
    /// What a shown token means.
    enum Verdict: Hashable, Sendable {
        case valid(Caller)
        case expired(name: String, at: WallTime)
        case revoked(name: String, at: WallTime)
        case unknown

        var caller: Caller? { if case .valid(let caller) = self { caller } else { nil } }

        /// Why the token is refused.
        var refusal: String {
            switch self {
            case .valid, .unknown: "The coordinator does not know this token."
            case .expired(let name, let time):
                "The token of “\(name)” expired at \(DateText.text(time)): ask for a new one."
            case .revoked(let name, let time):
                "The token of “\(name)” was revoked at \(DateText.text(time)): ask for a new one."
            }
        }
    }

    private struct State {
        var file: AccessTokens
        var created: CreatedTokens
        var nextReader = 0
        var readers: [Int: AsyncStream<Void>.Continuation] = [:]
    }

    private let state: Mutex<State>
    /// Held while the file of created tokens is written.
    private let writing = Mutex(())
    /// The file of tokens; `nil`: there is none.
    private let filePath: String?
    /// The file of created tokens; `nil`: they are only in memory.
    private let createdPath: String?
    private let now: @Sendable () -> WallTime

    /// - Parameters:
    ///   - file: The tokens of the file of tokens, or others that nobody can revoke.
    ///   - filePath: That file; `nil`: there is none.
    ///   - createdPath: The file of tokens that are created by command; `nil`: they are only in
    ///     memory.
    ///   - now: The calendar, by which tokens expire.
    /// - Throws: an error if the file of created tokens is not safe or not valid.
    package init(
        file: AccessTokens,
        filePath: String? = nil,
        createdPath: String? = nil,
        now: @escaping @Sendable () -> WallTime
    ) throws(HTTPServerError) {
        let created = try createdPath.map { path throws(HTTPServerError) in
            try CreatedTokens(file: path)
        }
        state = Mutex(State(file: file, created: created ?? CreatedTokens()))
        self.filePath = filePath
        self.createdPath = createdPath
        self.now = now
    }

    /// A book of tokens that nobody creates and no file has.
    init(_ tokens: AccessTokens, now: @escaping @Sendable () -> WallTime) {
        state = Mutex(State(file: tokens, created: CreatedTokens()))
        filePath = nil
        createdPath = nil
        self.now = now
    }

    /// Whether there is no token at all.
    var isEmpty: Bool {
        state.withLock { $0.file.isEmpty && $0.created.entries.isEmpty }
    }

    func verdict(showing token: String) -> Verdict { verdict(AccessTokens.digest(token)) }

    /// What the token with this hash means now.
    func verdict(_ digest: [UInt8]) -> Verdict {
        let (file, created) = state.withLock { state in
            (state.file.entry(digest), state.created.entry(digest))
        }
        guard let entry = file ?? created?.token else { return .unknown }
        if file == nil, let revokedAt = created?.revokedAt {
            return .revoked(name: entry.name, at: revokedAt)
        }
        if let expires = entry.expires, expires <= now() {
            return .expired(name: entry.name, at: expires)
        }
        return .valid(entry.caller)
    }

    /// What the token of a caller means now. A caller that needed none stays what it is.
    func verdict(_ caller: Caller) -> Verdict {
        caller.digest.map { verdict($0) } ?? .valid(caller)
    }

    /// What the token of this name may not do, also if it has expired or was revoked. Without such
    /// a token there are no bounds.
    package func bounds(of name: String) -> SubmitterBounds {
        let entry = state.withLock { state in
            state.file.entries.first { $0.name == name }
                ?? state.created.entries.last { $0.token.name == name }?.token
        }
        guard let entry else { return .none }
        return SubmitterBounds(queues: entry.queues, mayCancelOthers: entry.role >= .operate)
    }

    /// Returns when the token of a caller is no longer valid, or when the task is cancelled.
    func untilInvalid(_ caller: Caller) async {
        guard let digest = caller.digest else {
            for await _ in AsyncStream<Never>.makeStream().stream {}
            return
        }
        while !Task.isCancelled {
            // Before the look, so that no change is missed.
            let (number, changes) = addReader()
            defer { state.withLock { $0.readers[number] = nil } }
            guard case .valid = verdict(digest) else { return }
            let left = timeLeft(digest)
            await withTaskGroup(of: Void.self) { group in
                group.addTask { for await _ in changes { return } }
                if let left { group.addTask { try? await Task.sleep(for: left) } }
                await group.next()
                group.cancelAll()
            }
        }
    }

    private func addReader() -> (number: Int, changes: AsyncStream<Void>) {
        let (changes, continuation) = AsyncStream<Void>.makeStream(
            bufferingPolicy: .bufferingNewest(1)
        )
        let number = state.withLock { state in
            state.nextReader += 1
            state.readers[state.nextReader] = continuation
            return state.nextReader
        }
        return (number, changes)
    }

    private func timeLeft(_ digest: [UInt8]) -> Duration? {
        state.withLock { state in
            (state.file.entry(digest) ?? state.created.entry(digest)?.token)?.expires
        }.map { max(.zero, $0 - now()) }
    }

    // MARK: - Changes

    /// Takes the tokens of the file of tokens, as it is now.
    package func replaceFile(_ file: AccessTokens) {
        state.withLock { $0.file = file }
        wakeReaders()
    }

    /// All tokens, those of the file first.
    var views: [TokenView] {
        let (file, created) = state.withLock { ($0.file.entries, $0.created.entries) }
        let now = now()
        // The token of the own user has no name, and is in no list.
        return file.filter { !$0.name.isEmpty }.map { view($0, .file, now) }
            + created.map { view($0, now) }
    }

    private func view(
        _ token: AccessTokens.Entry,
        _ source: TokenView.Source,
        _ now: WallTime
    ) -> TokenView {
        let isExpired = token.expires.map { $0 <= now } ?? false
        var view = TokenView(
            name: token.name,
            role: token.role,
            status: isExpired ? .expired : .valid,
            source: source
        )
        view.queues = token.queues
        view.expiresAt = token.expires.map { TimeText($0) }
        return view
    }

    private func view(_ entry: CreatedTokens.Entry, _ now: WallTime) -> TokenView {
        var view = view(entry.token, .created, now)
        view.createdAt = TimeText(entry.createdAt)
        view.createdBy = entry.createdBy
        view.revokedAt = entry.revokedAt.map { TimeText($0) }
        if entry.revokedAt != nil { view.status = .revoked }
        return view
    }

    /// Creates a token, which is valid when this returns. Blocks.
    ///
    /// - Returns: The only view that has the text of the token.
    func create(_ request: TokenRequest, by: String) throws(ClientError) -> TokenView {
        try check(request)
        let now = now()
        let text = OwnToken.drawn()
        let token = AccessTokens.Entry(
            name: request.name,
            role: request.role,
            digest: AccessTokens.digest(text),
            queues: request.queues,
            expires: request.expiresInSeconds.map { now + .seconds($0) }
        )
        let entry = CreatedTokens.Entry(token: token, createdAt: now, createdBy: by)
        try change { created, file throws(ClientError) in
            guard !file.contains(where: { $0.name == request.name }),
                created.valid(request.name) == nil
            else {
                throw ClientError(
                    .conflict,
                    "There is a token “\(request.name)” already: revoke it, or choose another name."
                )
            }
            do throws(CreatedTokens.ClientErrorText) {
                try created.add(entry)
            } catch {
                throw ClientError(.tooLarge, error.text)
            }
        }
        var view = view(entry, now)
        view.token = text
        return view
    }

    private func check(_ request: TokenRequest) throws(ClientError) {
        guard TokenLine.isName(request.name) else {
            throw ClientError(.invalid, "The name of a token is not valid: \(TokenLine.nameRule).")
        }
        let bytesMax = Limits().nameBytes
        if let queues = request.queues {
            guard request.role == .submit else {
                throw ClientError(.invalid, "Only a token with the role submit is bound to queues.")
            }
            guard (1...AccessTokens.queuesMax).contains(queues.count),
                queues.allSatisfy({ (1...bytesMax).contains($0.utf8.count) })
            else {
                throw ClientError(
                    .invalid,
                    "A token is bound to 1 to \(AccessTokens.queuesMax) queues, whose names have 1 "
                        + "to \(bytesMax) bytes."
                )
            }
        }
        if let seconds = request.expiresInSeconds, !(1...TokenRequest.secondsMax).contains(seconds)
        {
            throw ClientError(
                .invalid,
                "A token expires after 1 to \(TokenRequest.secondsMax) seconds."
            )
        }
    }

    /// Revokes a created token: when this returns, it is not valid any more. Blocks.
    func revoke(_ name: String) throws(ClientError) -> TokenView {
        let now = now()
        var revoked: CreatedTokens.Entry?
        let path = filePath
        try change { created, file throws(ClientError) in
            revoked = created.revoke(name, at: now)
            guard revoked == nil else { return }
            if file.contains(where: { $0.name == name && !name.isEmpty }) {
                throw ClientError(
                    .conflict,
                    "The token “\(name)” is in the file \(path ?? "of --tokens"): remove its line "
                        + "there."
                )
            }
            throw ClientError(.notFound, "There is no token “\(name)” that could be revoked.")
        }
        guard let revoked else { throw ClientError(.internal, "The token was not revoked.") }
        return view(revoked, now)
    }

    /// Changes the created tokens: first on the disk, then here.
    private func change(
        _ body: (inout CreatedTokens, [AccessTokens.Entry]) throws(ClientError) -> Void
    ) throws(ClientError) {
        try writing.withLock { _ throws(ClientError) in
            var (created, file) = state.withLock { ($0.created, $0.file.entries) }
            try body(&created, file)
            if let createdPath {
                do throws(HTTPServerError) {
                    try created.write(to: createdPath)
                } catch {
                    throw ClientError(.unavailable, error.message)
                }
            }
            let changed = created
            state.withLock { $0.created = changed }
            wakeReaders()
        }
    }

    private func wakeReaders() {
        let readers = state.withLock { Array($0.readers.values) }
        for reader in readers { reader.yield() }
    }
}
