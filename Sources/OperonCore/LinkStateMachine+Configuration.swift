import OperonModel

extension LinkStateMachine {
    package struct Configuration: Hashable, Sendable {
        /// The first pause after a failure; each further one doubles it.
        package var pauseMin = Duration.milliseconds(50)
        /// No pause is longer, and a connection that lived this long has forgotten its failures.
        package var pauseMax = Duration.seconds(5)
        /// No pause for what the other side has yet to declare is longer: it costs two small
        /// frames, and somebody waits for it.
        package var absencePauseMax = Duration.seconds(1)
        /// Socket, TLS and login together; also declaring and consuming together.
        package var connectWithin = Duration.seconds(10)
        /// How long a lock may be one's own ghost's: a broker drops a silent connection after two
        /// or three heartbeats of 5 s.
        package var lockPatience = Duration.seconds(20)
        /// How long closing may take to send what was accepted.
        package var closeWithin = Duration.seconds(5)

        package init() {}
    }

    struct Liveness: Hashable, Sendable {
        let heartbeat: Duration
        var received: Timestamp
        var sent: Timestamp

        /// "If a peer detects no incoming traffic for two heartbeat intervals or longer, it should
        /// close the connection" (AMQP 0-9-1 §4.2.7).
        var silentAt: Timestamp { received + heartbeat * 2 }
        var heartbeatAt: Timestamp { sent + heartbeat / 2 }
        var wakeAt: Timestamp { min(silentAt, heartbeatAt) }
    }
}

/// Why a connection did not come up, or did not last.
package enum LinkFailure: Hashable, Sendable {
    /// Anything that another try may mend.
    case lost(String)
    /// The connection lives, but what the other side has to declare does not exist yet.
    case absent(String)
    /// Somebody else holds the lock: who, if they answered. A ghost never answers.
    case locked(holder: String?)
    /// Who we are was refused: no further try mends it.
    case refused(String)
    /// The broker has no such place for us. At the first connection that is a mistake in the
    /// address; later, a broker that is being restored.
    case notAllowed(String)
    /// What we declare exists as something else. As `notAllowed`, a mistake only at first.
    case incompatible(String)
}

/// How a link ended.
package enum LinkEnd: Hashable, Sendable {
    case closed
    case accessRefused(String)
    case incompatible(String)
    /// `holder`: who answered for the lock, if anybody did.
    case prefixHeld(holder: String?)
}
