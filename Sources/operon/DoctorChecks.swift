import NIOCore
import NIOPosix
import OperonAMQP
import OperonModel
import OperonRuntime
import OperonTerminal

/// The checks of `operon doctor`, in order, and their messages.
struct DoctorChecks {
    let configuration: AMQPConfiguration
    let role: BrokerProbe.Role
    let limit: Duration

    /// The oldest RabbitMQ series that the broker tests have run with.
    private static let oldestVersion = (3, 10)
    /// A certificate that expires in fewer days gives a warning.
    private static let certificateDaysMin: Int64 = 14
    private static let secondsPerDay: Int64 = 86_400
    /// How many workers are listed by name.
    private static let workersNamedMax = 10

    func run() async -> CheckReport {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        defer { group.shutdownGracefully { _ in } }
        var random = SystemRandomNumberGenerator()
        let probe = BrokerProbe(configuration, roles: [role], id: random.next() | 1)
        let found = await probe.run(on: group, within: limit)

        var report = CheckReport()
        report.findings += connection(found)
        report.findings += encryption(found)
        report.findings += server(found)
        report.findings += login(found)
        report.findings += permissions(found)
        report.findings += coordinator(found)
        if found.holder == .nobody {
            report.findings += await workers(on: group, seed: random.next())
        }
        report.findings += clock()
        return report
    }

    private var address: BrokerAddress { configuration.address }

    private var place: String {
        let host = address.host.contains(":") ? "[\(address.host)]" : address.host
        return "\(host):\(address.port)"
    }

    // MARK: - The broker

    private func connection(_ found: BrokerProbe.Report) -> [CheckReport.Finding] {
        var findings: [CheckReport.Finding] = []
        if let elapsed = found.connectedAfter {
            let time = TimeFormat.short(elapsed)
            findings.append(.init(.fine, "broker", "\(place) was reached in \(time)"))
        }
        guard let failure = found.failure else { return findings }
        switch failure.stage {
        case .connecting:
            let advice =
                "Is the broker running, and reachable from here? By default it listens on port "
                + "5672, or on 5671 for TLS."
            findings.append(
                .init(
                    .failure,
                    "broker",
                    "\(place) cannot be reached: \(failure.reason)",
                    advice: advice
                )
            )
        case .greeting:
            let advice = "Is it a broker? If this port uses TLS, the URL must begin with amqps://."
            findings.append(
                .init(
                    .failure,
                    "broker",
                    "\(place) does not answer as a broker: \(failure.reason)",
                    advice: advice
                )
            )
        case .later:
            findings.append(.init(.failure, "broker", "the link broke: \(failure.reason)"))
        case .encrypting, .loggingIn, .virtualHost: break
        }
        return findings
    }

    private func encryption(_ found: BrokerProbe.Report) -> [CheckReport.Finding] {
        if let failure = found.failure, failure.stage == .encrypting {
            let advice =
                "Give the certificate of the authority that signed it: amqps://…?cacertfile=FILE. "
                + "If this port does not use TLS, the URL must begin with amqp://."
            return [.init(.failure, "TLS", failure.reason, advice: advice)]
        }
        guard found.connectedAfter != nil else { return [] }
        guard address.tls != nil else {
            let isHere = ["localhost", "127.0.0.1", "::1"].contains(address.host)
            guard !isHere else { return [.init(.fine, "TLS", "none, on this machine")] }
            return [
                .init(
                    .warning,
                    "TLS",
                    "none: the password and all messages can be read on the way",
                    advice: "Use amqps://, unless you trust everybody in this network."
                )
            ]
        }
        guard let certificate = found.certificate else { return [] }
        let now = SystemClock.wall().nanosecondsSince1970 / 1_000_000_000
        let days = (certificate.validUntil - now) / Self.secondsPerDay
        let until = Self.date(certificate.validUntil)
        let isShort = days < Self.certificateDaysMin
        return [
            .init(
                isShort ? .warning : .fine,
                "TLS",
                "the broker’s certificate is trusted, and valid until \(until)",
                advice: isShort ? "Renew it within \(max(0, days)) days." : ""
            )
        ]
    }

    private static func date(_ seconds: Int64) -> String {
        let moment = WallTime(nanosecondsSince1970: seconds * 1_000_000_000)
        return String(TimeFormat.iso8601(moment).prefix(10))
    }

    private func server(_ found: BrokerProbe.Report) -> [CheckReport.Finding] {
        guard let product = found.product, let version = found.version else { return [] }
        let name = "\(product) \(version)"
        guard product == "RabbitMQ" else {
            let advice = "Operon is tested with RabbitMQ only."
            return [.init(.warning, "version", name, advice: advice)]
        }
        let parts = version.split(separator: ".").prefix(2).compactMap { Int($0) }
        guard parts.count == 2 else { return [.init(.warning, "version", name)] }
        let isOld = (parts[0], parts[1]) < Self.oldestVersion
        let advice = "Operon is tested with 3.10 and later."
        return [.init(isOld ? .warning : .fine, "version", name, advice: isOld ? advice : "")]
    }

    private func login(_ found: BrokerProbe.Report) -> [CheckReport.Finding] {
        let host = "virtual host “\(address.virtualHost)”"
        guard let failure = found.failure, !found.isLoggedIn else {
            guard found.isLoggedIn else { return [] }
            return [.init(.fine, "login", "as “\(address.user)”, \(host)")]
        }
        switch failure.stage {
        case .loggingIn:
            let advice =
                "Check the user and the password (rabbitmqctl authenticate_user). By default, the "
                + "user guest may only connect from the broker’s own machine."
            let text = "“\(address.user)” is refused: \(failure.reason)"
            return [.init(.failure, "login", text, advice: advice)]
        case .virtualHost:
            let advice =
                "Check the part of the URL after the third “/” (rabbitmqctl list_vhosts), and that "
                + "“\(address.user)” has permissions there (rabbitmqctl list_permissions)."
            return [
                .init(.failure, "login", "\(host) is refused: \(failure.reason)", advice: advice)
            ]
        case .connecting, .encrypting, .greeting, .later: return []
        }
    }

    private func permissions(_ found: BrokerProbe.Report) -> [CheckReport.Finding] {
        guard !found.permissions.isEmpty else { return [] }
        var findings: [CheckReport.Finding] = []
        var granted = 0
        var absent: [String] = []
        for permission in found.permissions {
            switch permission.outcome {
            case .granted: granted += 1
            case .absent: absent.append(permission.what)
            case .refused(let reason):
                findings.append(
                    .init(
                        .failure,
                        "permissions",
                        "a \(role.rawValue) cannot \(permission.what): \(reason)",
                        advice: advice
                    )
                )
            }
        }
        if granted == found.permissions.count {
            let text = "“\(address.user)” has all permissions that a \(role.rawValue) needs"
            findings.append(.init(.fine, "permissions", text))
        }
        if !found.beyond.isEmpty {
            findings.append(
                .init(
                    .warning,
                    "permissions",
                    "“\(address.user)” may do what no \(role.rawValue) needs: "
                        + found.beyond.joined(separator: ", "),
                    advice: "If only \(role.rawValue)s use this login, and no trigger reads a "
                        + "queue with it: \(advice)"
                )
            )
        }
        if !absent.isEmpty {
            findings.append(
                .init(
                    .warning,
                    "permissions",
                    "not checked: \(absent.joined(separator: ", "))",
                    advice: "They can be checked after a coordinator has used this broker."
                )
            )
        }
        return findings
    }

    /// The command that gives the user the permissions that the role needs, and no others.
    private var advice: String {
        let rights = BrokerRights(role, prefix: configuration.prefix)
        let words = [
            address.virtualHost, address.user, rights.configure, rights.write, rights.read,
        ]
        return "rabbitmqctl set_permissions -p " + words.map(Self.quoted).joined(separator: " ")
    }

    /// Quotes a text as one word for a shell.
    private static func quoted(_ word: String) -> String {
        let plain = word.unicodeScalars.allSatisfy {
            switch $0 {
            case "a"..."z", "A"..."Z", "0"..."9", "/", ".", "_", "-", "@": true
            case _: false
            }
        }
        if plain, !word.isEmpty { return word }
        return "'" + word.replacing("'", with: "'\\''") + "'"
    }

    // MARK: - Who is there

    private func coordinator(_ found: BrokerProbe.Report) -> [CheckReport.Finding] {
        let prefix = "the prefix “\(configuration.prefix)”"
        switch found.holder {
        case nil: return []
        case .nobody:
            return [.init(.fine, "coordinator", "none holds \(prefix) now")]
        case .coordinator(let holder):
            var findings: [CheckReport.Finding] = [
                .init(.fine, "coordinator", "\(holder.sentence), holds \(prefix)")
            ]
            if let workers = holder.workers, let slots = holder.slots {
                findings.append(Self.count(workers, slots))
            }
            return findings
        case .silent:
            return [
                .init(
                    .warning,
                    "coordinator",
                    "\(prefix) is locked, and its holder does not answer",
                    advice: "It may be frozen. If it is gone, the broker notices within 20 s."
                )
            ]
        }
    }

    private func workers(
        on group: MultiThreadedEventLoopGroup,
        seed: UInt64
    ) async -> [CheckReport.Finding] {
        let survey = WorkerSurvey(configuration: configuration)
        guard let workers = await survey.run(on: group, seed: seed) else { return [] }
        let seconds = WorkerSurvey.patience.components.seconds
        guard !workers.isEmpty else {
            let text = "none was heard within \(seconds) s"
            return [.init(.warning, "workers", text, advice: Self.startWorkers)]
        }
        let slots = workers.compactMap(\.slots)
        // Those that seal their messages have not said how many slots they have.
        var finding =
            slots.isEmpty
            ? CheckReport.Finding(.fine, "workers", "\(workers.count)")
            : Self.count(workers.count, slots.reduce(0, +))
        let named = workers.prefix(Self.workersNamedMax).map(\.words).joined(separator: ", ")
        let more = workers.count - Self.workersNamedMax
        finding.text += ": \(named)" + (more > 0 ? " and \(more) more" : "")
        return [finding]
    }

    private static let startWorkers = "Start operon-worker with the same broker and prefix."

    private static func count(_ workers: Int, _ slots: Int) -> CheckReport.Finding {
        guard workers > 0 else { return .init(.warning, "workers", "none", advice: startWorkers) }
        let slots = slots == 1 ? "1 slot" : "\(slots) slots"
        return .init(.fine, "workers", "\(workers), with \(slots)")
    }

    // MARK: - The clock

    /// A broker does not report its time, so the clocks of other machines are not checked.
    private func clock() -> [CheckReport.Finding] {
        guard let isKept = SystemClock.isKept else { return [] }
        guard !isKept else {
            return [.init(.fine, "clock", "a time service keeps this machine’s clock")]
        }
        return [
            .init(
                .warning,
                "clock",
                "the kernel knows of no time service that keeps this machine’s clock",
                advice: "notBefore and deadline go by the coordinator’s clock: see timedatectl."
            )
        ]
    }
}
