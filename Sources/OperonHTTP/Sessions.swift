import HTTPTypes
import OperonModel
import OperonSystem
import Synchronization

/// The browsers that are logged in.
///
/// A browser shows a token or a one-time code once. From then on it sends a cookie, which scripts
/// cannot read. Sessions are in memory: they end when the coordinator ends or is started again.
final class Sessions: Sendable {
    /// How long a session lasts. A working day, so that nobody logs in twice.
    static let lifetime = Duration.seconds(12 * 3_600)
    /// How long a one-time code is valid: the time to open an address.
    static let codeLifetime = Duration.seconds(120)
    /// The most sessions, and the most codes, of one token. A further one replaces its oldest, so
    /// that nobody ends the sessions of others by logging in often.
    static let entriesMax = 100

    private struct Entry {
        let caller: Caller
        let end: ContinuousClock.Instant
    }

    /// By the SHA-256 of what the browser shows, so that the time that a search takes tells nothing
    /// about the entries.
    private struct Entries {
        private var entries: [[UInt8]: Entry] = [:]
        /// The oldest first.
        private var order: [[UInt8]] = []

        var count: Int { entries.count }

        mutating func insert(_ key: [UInt8], _ entry: Entry, now: ContinuousClock.Instant) {
            // All live equally long, so the oldest end first.
            while let first = order.first, entries[first].map({ $0.end <= now }) ?? true {
                entries[order.removeFirst()] = nil
            }
            let own = order.filter { entries[$0]?.caller.name == entry.caller.name }
            if own.count >= Sessions.entriesMax { remove(own[0]) }
            entries[key] = entry
            order.append(key)
        }

        func caller(_ key: [UInt8], now: ContinuousClock.Instant) -> Caller? {
            guard let entry = entries[key], entry.end > now else { return nil }
            return entry.caller
        }

        mutating func remove(_ key: [UInt8]) {
            guard entries.removeValue(forKey: key) != nil else { return }
            order.removeAll { $0 == key }
        }
    }

    private struct State {
        var sessions = Entries()
        var codes = Entries()
    }

    private let state = Mutex(State())
    private let now: @Sendable () -> ContinuousClock.Instant

    /// - Parameter now: The time; another clock only in tests.
    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) {
        self.now = now
    }

    var count: Int { state.withLock { $0.sessions.count } }

    /// Begins a session. Returns the secret that the browser is to send.
    func begin(for caller: Caller) -> String {
        let secret = Self.drawnSecret()
        let now = now()
        let entry = Entry(caller: caller, end: now + Self.lifetime)
        state.withLock { $0.sessions.insert(Self.key(secret), entry, now: now) }
        return secret
    }

    func caller(showing secret: String) -> Caller? {
        let now = now()
        return state.withLock { $0.sessions.caller(Self.key(secret), now: now) }
    }

    func end(_ secret: String) {
        state.withLock { $0.sessions.remove(Self.key(secret)) }
    }

    /// Draws a code that begins one session.
    func drawCode(for caller: Caller) -> String {
        let code = Self.drawnSecret()
        let now = now()
        let entry = Entry(caller: caller, end: now + Self.codeLifetime)
        state.withLock { $0.codes.insert(Self.key(code), entry, now: now) }
        return code
    }

    /// Whose code it is. It is then used up.
    func take(code: String) -> Caller? {
        let now = now()
        return state.withLock { state in
            let key = Self.key(code)
            defer { state.codes.remove(key) }
            return state.codes.caller(key, now: now)
        }
    }

    private static func key(_ secret: String) -> [UInt8] { SHA256.hash(of: Array(secret.utf8)) }

    /// 256 bits, in hexadecimal digits.
    private static func drawnSecret() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<4).map { _ in
            let digits = String(UInt64.random(in: 0...UInt64.max, using: &generator), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }
}

/// The cookie of a session.
///
/// Browsers send the cookies of a machine to every port of it. The name therefore has the port, so
/// that several coordinators of one machine do not take each other's sessions away.
enum SessionCookie {
    /// The secret in the request's cookies. `nil`: none, or more than one, of which one may be
    /// another's.
    static func secret(in request: HTTPRequest) -> String? {
        let prefix = name(authority: request.authority) + "="
        var found: [Substring] = []
        for field in request.headerFields[values: .cookie] {
            for part in field.split(separator: ";") {
                let text = part.drop { $0 == " " }
                if text.hasPrefix(prefix) { found.append(text.dropFirst(prefix.count)) }
            }
        }
        return found.count == 1 ? String(found[0]) : nil
    }

    /// The header field that sets the cookie.
    ///
    /// - Parameter secret: `nil` removes it.
    static func field(_ secret: String?, authority: String?, isSecure: Bool) -> String {
        let seconds = secret == nil ? 0 : Int(Sessions.lifetime.seconds)
        let secure = isSecure ? "; Secure" : ""
        return "\(name(authority: authority))=\(secret ?? "")"
            + "; Path=/; Max-Age=\(seconds); HttpOnly; SameSite=Strict\(secure)"
    }

    private static func name(authority: String?) -> String {
        let port = (authority ?? "").split(separator: ":").last.map(String.init) ?? ""
        let isPort = !port.isEmpty && port.utf8.allSatisfy { (48...57).contains($0) }
        return isPort ? "operon-session-\(port)" : "operon-session"
    }
}
