import HTTPTypes
import Logging
import NIOCore
import OperonModel
import OperonPorts

// What the audit keeps of a request.

extension Responder {
    /// The most bytes of a path and of a sentence in an entry.
    private static let pathBytesMax = 1_024
    private static let detailBytesMax = 512

    /// Answers a request. If it is a change, the audit has it before it is made, and its result
    /// before it is answered.
    @concurrent func audited(
        _ route: Route,
        _ call: Call,
        _ request: HTTPRequest,
        _ channel: any Channel
    ) async throws -> Answer {
        guard let audit = context.configuration.audit, route.isAudited else {
            return try await route.answer(call)
        }
        let caller = call.isTrusted ? call.caller : nil
        var done = await entry(.done, request, caller, channel)
        // Whoever has no token and a wrong signature must not fill the disk.
        guard route.access != .signed else {
            let answer = try await route.answer(call)
            done.by = "signature"
            (done.status, done.target) = (answer.status, call.names["trigger"])
            await record(done, in: audit)
            return answer
        }
        var asked = done
        asked.kind = .asked
        do throws(AuditError) {
            done.of = try await audit.record(asked, isSynced: true)
        } catch {
            let message = "\(error). So nothing is changed."
            throw Failure(ClientError(.unavailable, message), headers: Self.later)
        }
        (done.method, done.path) = (nil, nil)
        do {
            let answer = try await route.answer(call)
            (done.status, done.target) = (answer.status, answer.target)
            await record(done, in: audit)
            return answer
        } catch {
            let failure = failure(error)
            (done.status, done.detail) = Self.words(failure)
            await record(done, in: audit)
            throw failure
        }
    }

    /// Writes into the audit that somebody had no right to what was asked.
    @concurrent func noteRefusal(
        _ failure: Failure,
        _ request: HTTPRequest,
        _ caller: Caller?,
        _ channel: any Channel
    ) async {
        guard let audit = context.configuration.audit,
            [.unauthorized, .forbidden].contains(failure.error.code)
        else { return }
        var entry = await entry(.refused, request, failure.caller ?? caller, channel)
        (entry.status, entry.detail) = Self.words(failure)
        do throws(AuditError) {
            try await audit.refuse(entry)
        } catch {
            logger.error("a refusal is not in the audit", metadata: ["error": "\(error)"])
        }
    }

    /// The change has been made already, so a failure is only told to the log.
    private func record(_ entry: AuditEntry, in audit: AuditLog) async {
        do throws(AuditError) {
            _ = try await audit.record(entry, isSynced: false)
        } catch {
            logger.error(
                "the result of a change is not in the audit",
                metadata: ["error": "\(error)"]
            )
        }
    }

    private func entry(
        _ kind: AuditEntry.Kind,
        _ request: HTTPRequest,
        _ caller: Caller?,
        _ channel: any Channel
    ) async -> AuditEntry {
        var entry = AuditEntry(kind, at: context.wall())
        entry.by = caller?.auditName
        if context.configuration.listen.tcp == nil {
            entry.from = "socket"
            entry.user = await PeerUser.number(at: channel)
        } else {
            entry.from = channel.remoteAddress?.ipAddress
        }
        entry.method = request.method.rawValue.cut(to: Self.pathBytesMax)
        // Parameters of graphs may be secrets.
        entry.path = String((request.path ?? "").prefix { $0 != "?" && $0 != "#" })
            .cut(to: Self.pathBytesMax)
        return entry
    }

    private static func words(_ failure: Failure) -> (status: Int, detail: String) {
        let status = failure.status ?? Problem.status(of: failure.error.code)
        return (status, failure.error.message.cut(to: detailBytesMax))
    }
}

extension Route {
    /// Whether the audit has requests of this kind. Logins and logouts change nothing, and neither
    /// does whatever a viewer may do: they are in the audit only if they are refused.
    package var isAudited: Bool { method != "GET" && access != .open && access != .view }
}

extension String {
    /// At most so many bytes of it.
    fileprivate func cut(to bytesMax: Int) -> String {
        guard utf8.count > bytesMax else { return self }
        return String(decoding: utf8.prefix(bytesMax), as: UTF8.self) + "…"
    }
}

extension Answer {
    fileprivate var status: Int {
        switch self {
        case .json(_, let isCreated, _): isCreated ? 201 : 200
        case .bytes(_, _, let status): status
        case .nothing: 204
        case .page, .file, .stream: 200
        }
    }

    /// What was made or changed, if its number or name is not in the path.
    fileprivate var target: String? {
        guard case .json(let value, _, _) = self else { return nil }
        switch value {
        case let view as GraphView: return "graph \(view.id)"
        case let view as ContinuationView: return view.graph.map { "graph \($0.id)" }
        case let view as TriggerView: return "trigger \(view.name)"
        case let view as TokenView: return "token \(view.name)"
        default: return nil
        }
    }
}
