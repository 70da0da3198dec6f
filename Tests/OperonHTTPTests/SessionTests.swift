import NIOConcurrencyHelpers
import OperonModel
import Testing

@testable import OperonHTTP

/// How long a browser is logged in, and what its cookie allows.
@Suite struct SessionTests {
    private static let start = ContinuousClock.now

    /// A clock that a test sets.
    private final class Clock: Sendable {
        private let passed = NIOLockedValueBox(Duration.zero)
        var now: ContinuousClock.Instant { SessionTests.start + passed.withLockedValue { $0 } }
        func pass(_ time: Duration) { passed.withLockedValue { $0 += time } }
    }

    private let caller = Caller(name: "ann", role: .operate)

    @Test func `a session ends after twelve hours, however often it is used`() {
        let clock = Clock()
        let sessions = Sessions { clock.now }
        let secret = sessions.begin(for: caller)
        clock.pass(.seconds(12 * 3_600 - 1))
        #expect(sessions.caller(showing: secret) == caller)
        clock.pass(.seconds(1))
        #expect(sessions.caller(showing: secret) == nil)
        // The next one takes its place.
        _ = sessions.begin(for: caller)
        #expect(sessions.count == 1)
    }

    @Test func `a code logs in once, within two minutes`() {
        let clock = Clock()
        let sessions = Sessions { clock.now }
        let (first, second) = (sessions.drawCode(for: caller), sessions.drawCode(for: caller))
        clock.pass(.seconds(119))
        #expect(sessions.take(code: first) == caller)
        #expect(sessions.take(code: first) == nil)
        clock.pass(.seconds(1))
        #expect(sessions.take(code: second) == nil)
    }

    @Test func `no script reads the cookie, no other page sends it, and TLS keeps it to itself`() {
        for isSecure in [false, true] {
            let field = SessionCookie.field("abc", authority: "host:7351", isSecure: isSecure)
            let parts = field.split(separator: ";").map { $0.drop { $0 == " " } }
            #expect(parts.first == "operon-session-7351=abc")
            #expect(parts.contains("HttpOnly") && parts.contains("SameSite=Strict"), "\(field)")
            #expect(parts.contains("Max-Age=43200") && parts.contains("Path=/"), "\(field)")
            #expect(parts.contains("Secure") == isSecure, "\(field)")
        }
        let removed = SessionCookie.field(nil, authority: nil, isSecure: true)
        #expect(removed.hasPrefix("operon-session=; ") && removed.contains("Max-Age=0"))
    }
}
