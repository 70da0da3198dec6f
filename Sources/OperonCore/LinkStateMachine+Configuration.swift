import OperonModel

extension LinkStateMachine {
    package struct Configuration: Hashable, Sendable {
        /// The first pause after a failure. Each further failure doubles it.
        package var pauseMin = Duration.milliseconds(50)
        /// The longest pause. A connection that lasted this long resets the count of failures.
        package var pauseMax = Duration.seconds(5)
        /// The longest pause before checking again for something that the other side has to
        /// declare. A check costs two small frames, and someone waits for the result.
        package var absencePauseMax = Duration.seconds(1)
        /// The time limit for socket, TLS and login together, and also for declaring and consuming
        /// together.
        package var connectWithin = Duration.seconds(10)
        /// How long a lock may belong to a dead connection of one's own: a broker drops a silent
        /// connection after two or three heartbeats of 5 s.
        package var lockPatience = Duration.seconds(20)
        /// How long closing may take to send the accepted messages.
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

/// Why a connection failed to open, or was lost.
package enum LinkFailure: Hashable, Sendable {
    /// A failure that another try may fix.
    case lost(String)
    /// The connection is open, but something that the other side has to declare does not exist yet.
    case absent(String)
    /// Another process holds the lock. `holder` names it if it answered. A dead connection never
    /// answers.
    case locked(holder: String?)
    /// The broker refused the login or the permissions: no further try fixes that.
    case refused(String)
    /// The broker refuses the virtual host, or TLS cannot be set up. At the first connection that
    /// is a mistake in the address; later, it means that the broker is being restored.
    case notAllowed(String)
    /// Something to be declared exists with other properties. As with `notAllowed`, a mistake only
    /// at first.
    case incompatible(String)
}

/// How a link ended.
package enum LinkEnd: Hashable, Sendable {
    case closed
    case accessRefused(String)
    case incompatible(String)
    /// `holder`: who answered for the lock, if anyone did.
    case prefixHeld(holder: String?)
}
