import NIOConcurrencyHelpers
package import OperonModel

/// All tokens that a coordinator knows, and what each shown token means now.
///
/// Sessions and streams ask again, so that a token that expired or is gone ends them as well.
package final class TokenBook: Sendable {
    /// What a shown token means.
    enum Verdict: Hashable, Sendable {
        case valid(Caller)
        case expired(name: String, at: WallTime)
        case unknown

        var caller: Caller? { if case .valid(let caller) = self { caller } else { nil } }

        /// Why the token is refused.
        var refusal: String {
            switch self {
            case .valid, .unknown: "The coordinator does not know this token."
            case .expired(let name, let time):
                "The token of “\(name)” expired at \(DateText.text(time)): ask for a new one."
            }
        }
    }

    private struct State {
        var file: AccessTokens
        var nextReader = 0
        var readers: [Int: AsyncStream<Void>.Continuation] = [:]
    }

    private let state: NIOLockedValueBox<State>
    private let now: @Sendable () -> WallTime

    /// - Parameters:
    ///   - file: The tokens of the file of tokens.
    ///   - now: The calendar, by which tokens expire.
    package init(file: AccessTokens, now: @escaping @Sendable () -> WallTime) {
        state = NIOLockedValueBox(State(file: file))
        self.now = now
    }

    /// Whether there is no token at all.
    var isEmpty: Bool { state.withLockedValue { $0.file.isEmpty } }

    func verdict(showing token: String) -> Verdict { verdict(AccessTokens.digest(token)) }

    /// What the token with this hash means now.
    func verdict(_ digest: [UInt8]) -> Verdict {
        guard let entry = state.withLockedValue({ $0.file.entry(digest) }) else { return .unknown }
        if let expires = entry.expires, expires <= now() {
            return .expired(name: entry.name, at: expires)
        }
        return .valid(entry.caller)
    }

    /// What the token of a caller means now. A caller that needed none stays what it is.
    func verdict(_ caller: Caller) -> Verdict {
        caller.digest.map { verdict($0) } ?? .valid(caller)
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
            defer { state.withLockedValue { $0.readers[number] = nil } }
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
        let number = state.withLockedValue { state in
            state.nextReader += 1
            state.readers[state.nextReader] = continuation
            return state.nextReader
        }
        return (number, changes)
    }

    private func timeLeft(_ digest: [UInt8]) -> Duration? {
        state.withLockedValue { $0.file.entry(digest)?.expires }.map { max(.zero, $0 - now()) }
    }
}
