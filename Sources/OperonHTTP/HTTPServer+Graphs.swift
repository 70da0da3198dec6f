import HTTPTypes
import NIOCore
import NIOPosix
import OperonModel
import OperonPorts

// Routes for graphs and their operations.

extension HTTPServer {
    private static let logParameters = ["follow", "tail", "since", "attempt"]

    static let graphRoutes: [Route] = [
        Route("GET", "/v1/graphs", .view, query: ["status", "name", "after", "limit"]) { call in
            var query = GraphQuery()
            if let text = call.query["status"] {
                guard let status = GraphStatus(rawValue: text) else {
                    let all = GraphStatus.allCases.map(\.rawValue).joined(separator: ", ")
                    throw Failure.invalid("status", "“\(text)” is none of \(all)")
                }
                query.status = status
            }
            query.name = call.query["name"]
            query.after = try call.number("after")
            query.limit = try call.limit(query.limit)
            return .json(try await call.client.graphs(query))
        },
        Route(
            "POST",
            "/v1/graphs",
            .submit,
            body: .graph,
            query: ["open", "name", "parameters"]
        ) { call in
            var submission = try await call.submission()
            submission.isOpen = try call.flag("open")
            return .json(try await call.client.submit(submission), created: true)
        },
        Route("GET", "/v1/graphs/{graph}", .view) { call in
            .json(try await call.client.graph(call.graph))
        },
        Route("GET", "/v1/graphs/{graph}/progress", .view) { call in
            let updates = try await call.client.progress(of: call.graph)
            return .stream { writer in
                for try await progress in updates { try await writer.send("progress", progress) }
            }
        },
        Route("GET", "/v1/graphs/{graph}/log", .view, query: logParameters + ["repeated"]) { call in
            var query = try call.logQuery
            query.repeated = call.query["repeated"]
            return try await call.logStream(of: .graph(call.graph), query)
        },
        Route(
            "POST",
            "/v1/graphs/{graph}/resubmit",
            .submit,
            body: .graph,
            query: ["again", "dryRun", "name", "parameters"]
        ) { call in
            var options = ResubmitOptions()
            options.again = try call.names("again")
            options.isDryRun = try call.flag("dryRun")
            let view = try await call.client.resubmit(
                try await call.submission(),
                of: call.graph,
                options
            )
            return .json(view, created: !options.isDryRun)
        },
        Route("POST", "/v1/graphs/{graph}/rerun", .operate, body: .json(isRequired: true)) { call in
            var request = try call.json(RerunBody.self).request
            (request.idempotencyKey, request.traceParent) = try call.submissionHeaders()
            let view = try await call.client.rerun(graph: call.graph, request)
            return .json(view, created: !request.isDryRun)
        },
        Route("POST", "/v1/graphs/{graph}/close", .own) { call in
            .json(try await call.client.close(graph: call.graph))
        },
        Route("POST", "/v1/graphs/{graph}/cancel", .own, body: .options) { call in
            .json(try await call.cancel(.graph(call.graph)))
        },
        Route("POST", "/v1/graphs/{graph}/suspend", .operate, body: .options) { call in
            .json(try await call.suspend(.graph(call.graph)))
        },
        Route("POST", "/v1/graphs/{graph}/resume", .operate) { call in
            .json(try await call.client.resume(.graph(call.graph)))
        },
        Route("POST", "/v1/graphs/{graph}/retry", .operate, body: .options) { call in
            let request = try call.json(RetryBody.self).request
            return .json(try await call.client.retry(graph: call.graph, request))
        },
        Route(
            "GET",
            "/v1/graphs/{graph}/operations",
            .view,
            query: ["state", "outcome", "queue", "namePrefix", "numbers", "box", "after", "limit"]
        ) { call in
            .json(try await call.operations())
        },
        Route(
            "POST",
            "/v1/graphs/{graph}/operations",
            .own,
            body: .graph,
            query: ["parameters"]
        ) { call in
            let addition = try await call.submission()
            return .json(try await call.client.add(addition, to: call.graph), created: true)
        },
    ]

    private static let operationPath = "/v1/graphs/{graph}/operations/{operation}"

    static let operationRoutes: [Route] = [
        Route("GET", operationPath, .view) { call in
            .json(try await call.client.operation(call.operation))
        },
        Route("GET", operationPath + "/explain", .view) { call in
            .json(try await call.client.explain(call.operation))
        },
        Route("GET", operationPath + "/input", .view) { call in
            guard let input = try await call.client.input(of: call.operation) else {
                return .nothing
            }
            return .bytes(ByteBuffer(bytes: input.bytes), type: input.contentType)
        },
        Route("GET", operationPath + "/output", .view) { call in
            guard let output = try await call.client.output(of: call.operation) else {
                return .nothing
            }
            return .bytes(ByteBuffer(bytes: output.bytes), type: output.contentType)
        },
        Route("GET", operationPath + "/log", .view, query: logParameters) { call in
            let query = try call.logQuery
            if query.follow || call.prefersStream {
                return try await call.logStream(of: .operation(call.operation), query)
            }
            let stream = try await call.client.log(of: .operation(call.operation), query)
            let logs = try await stream.reduce(into: []) { $0.append($1) }
            guard call.prefersText else { return .json(LogsBody(logs: logs)) }
            let last = logs.filter { $0.number == logs.last?.number }
            let text = last.map { log in
                (log.missedBytes > 0 ? KeptLog.gap(log.missedBytes) : "") + log.text
            }
            let printable = PlainText.printable(text.joined())
            return .bytes(ByteBuffer(string: printable), type: "text/plain; charset=utf-8")
        },
        Route("POST", operationPath + "/cancel", .own, body: .options) { call in
            .json(try await call.cancel(.operation(call.operation)))
        },
        Route(
            "POST",
            operationPath + "/complete",
            .operate,
            body: .json(isRequired: true)
        ) { call in
            let body = try CompletionBody(json: call.body)
            let view = try await call.client.complete(
                call.operation,
                attempt: body.attempt,
                with: body.completion
            )
            return .json(view)
        },
        Route("POST", operationPath + "/suspend", .operate, body: .options) { call in
            .json(try await call.suspend(.operation(call.operation)))
        },
        Route("POST", operationPath + "/resume", .operate) { call in
            .json(try await call.client.resume(.operation(call.operation)))
        },
        Route("PUT", operationPath + "/priority", .operate, body: .json(isRequired: true)) { call in
            let priority = try call.json(PriorityBody.self).priority
            return .json(try await call.client.setPriority(of: call.operation, to: priority))
        },
        Route(
            "PUT",
            operationPath + "/dependencies/{dependencyGraph}/{dependency}",
            .operate,
            query: ["condition"]
        ) { call in
            let condition = try call.named("condition", DependencyCondition.self) ?? .unlessFailed
            let detail = try await call.client.addDependency(
                of: call.operation,
                on: call.dependency,
                condition
            )
            return .json(detail)
        },
        Route(
            "DELETE",
            operationPath + "/dependencies/{dependencyGraph}/{dependency}",
            .operate
        ) { call in
            let detail = try await call.client.removeDependency(
                of: call.operation,
                on: call.dependency
            )
            return .json(detail)
        },
    ]
}

extension Route.Body {
    /// An object without required fields.
    static var options: Self { .json(isRequired: false) }
}

extension Call {
    fileprivate var dependency: OperationSelector {
        OperationSelector(
            graph: names["dependencyGraph"] ?? "",
            operation: names["dependency"] ?? ""
        )
    }

    /// Which part of a log the client asks for.
    fileprivate var logQuery: LogQuery {
        get throws(Failure) {
            LogQuery(
                follow: try flag("follow"),
                tail: try number("tail", Int.self),
                since: try moment("since"),
                attempt: try number("attempt", UInt32.self)
            )
        }
    }

    fileprivate func logStream(of selector: LogSelector, _ query: LogQuery) async throws -> Answer {
        let stream = try await client.log(of: selector, query)
        return .stream { writer in
            for try await log in stream { try await writer.send("log", log) }
            try await writer.send("end", [String: String]())
        }
    }

    /// Whether the client asked for a stream.
    fileprivate var prefersStream: Bool {
        headers[.accept]?.lowercased().hasPrefix("text/event-stream") == true
    }

    /// Whether the client asked for text and not for JSON.
    fileprivate var prefersText: Bool {
        let accept = headers[.accept]?.lowercased() ?? ""
        return accept.hasPrefix("text/plain")
    }

    func cancel(_ target: TargetSelector) async throws -> CommandView {
        let request = try json(CancelBody.self).request
        try checked(request.wait)
        // Dependents may be those of others.
        guard !request.cascade || caller.role >= .operate else {
            throw Failure(
                ClientError(
                    .forbidden,
                    "The token of “\(caller.name)” has the role “\(caller.role)”: it can cancel an "
                        + "operation, but not what depends on it (“cascade”)."
                )
            )
        }
        return try await client.cancel(target, request)
    }

    func suspend(_ target: TargetSelector) async throws -> CommandView {
        let request = try json(SuspendBody.self).request
        try checked(request.wait)
        return try await client.suspend(target, request)
    }

    /// The graph in the body, with the settings from the header fields and the query.
    fileprivate func submission() async throws -> Submission {
        let codec = server.codec
        let bytes = body
        let type = headers[.contentType] ?? ""
        let name = query["name"] ?? ""
        let parameters = query["parameters"]
        let graph: GraphDescription
        do {
            // Decoding a large graph takes seconds; other requests must not wait for it.
            graph = try await NIOThreadPool.singleton.runIfActive {
                try codec.decode(
                    bytes,
                    contentType: type,
                    name: name,
                    parameters: parameters
                )
            }
        } catch is CancellationError {
            throw ClientError(.unavailable, "The coordinator is stopping: try again.")
        } catch {
            throw ClientError(.invalid, "\(error)")
        }
        try checkQueues(of: graph)
        var submission = Submission(graph: graph)
        (submission.idempotencyKey, submission.traceParent) = try submissionHeaders()
        return submission
    }

    /// Checks the queues and keys of a graph before the coordinator sees it. What depends on other
    /// graphs, the coordinator checks.
    private func checkQueues(of graph: GraphDescription) throws(Failure) {
        let bounds = SubmitterBounds(queues: caller.queues, mayCancelOthers: true)
        guard let objection = bounds.objection(to: graph, owns: { _ in true }) else { return }
        throw Failure(
            ClientError(
                .forbidden,
                "The token of “\(caller.name)” does not allow this: \(objection)."
            )
        )
    }

    fileprivate func submissionHeaders() throws(Failure) -> (key: String?, traceParent: String?) {
        let bytesMax = Limits().nameBytes
        return (
            try headerText("Idempotency-Key", bytesMax: bytesMax),
            try headerText("traceparent", bytesMax: bytesMax)
        )
    }

    func headerText(_ name: String, bytesMax: Int) throws(Failure) -> String? {
        guard let field = HTTPField.Name(name), let text = headers[field] else { return nil }
        guard (1...bytesMax).contains(text.utf8.count),
            text.utf8.allSatisfy({ (33...126).contains($0) })
        else { throw .invalid(name, "has 1 to \(bytesMax) characters of ASCII, and no space") }
        return text
    }
}

/// Text that is safe to show on a terminal.
enum PlainText {
    /// Removes control characters and the sequences that colour a terminal, move its cursor or
    /// change its title.
    static func printable(_ text: String) -> String {
        var out = String.UnicodeScalarView()
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            switch scalar.value {
            case 0x1B: skipSequence(&rest)
            case 0x09, 0x0A, 0x0D: out.append(scalar)
            case 0x00..<0x20, 0x7F..<0xA0: continue
            default: out.append(scalar)
            }
        }
        return String(out)
    }

    /// Skips the rest of an escape sequence: up to the last byte of a CSI sequence, up to the end
    /// of an OSC sequence, otherwise one character.
    private static func skipSequence(_ rest: inout Substring.UnicodeScalarView) {
        guard let first = rest.popFirst() else { return }
        switch first {
        case "[":
            while let scalar = rest.popFirst() {
                if (0x40...0x7E).contains(scalar.value) { return }
            }
        case "]":
            while let scalar = rest.popFirst() {
                if scalar.value == 7 { return }
                if scalar.value == 0x1B {
                    _ = rest.popFirst()
                    return
                }
            }
        default: return
        }
    }
}
