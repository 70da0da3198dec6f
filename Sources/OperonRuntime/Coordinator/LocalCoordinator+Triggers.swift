import Logging
import OperonCore
package import OperonModel
package import OperonPorts
import OperonSystem

// Triggers.
extension LocalCoordinator {
    package func addTrigger(
        _ body: [UInt8],
        contentType: String,
        replace: Bool
    ) async throws(ClientError) -> TriggerView {
        let support = try await answers.live { service throws(ClientError) in
            try service.triggerSupport()
        }
        let description: TriggerDescription
        let zone: TimeZoneRules
        do {
            let given = try support.codec.decodeTrigger(body, contentType: contentType)
            let resolved = try support.resolved(given)
            description = try await answers.live { service throws(ClientError) in
                try await service.identified(resolved)
            }
            zone = try support.zone(of: description)
            try TriggerCheck.check(description, support.codec, limits)
        } catch let error as ClientError {
            throw error
        } catch let error as TriggerSourceError {
            throw ClientError(.invalid, "The trigger cannot be added: \(error.message).")
        } catch {
            throw ClientError(.invalid, "\(error)")
        }
        let text = try Self.stored(description, support.codec)
        let trigger = description
        let rules = zone
        return try await answers.change { service throws(ClientError) in
            try service.add(trigger, body: text, zone: rules, replace: replace, caller)
        }
    }

    /// The text that the store keeps. It must be readable after a restart.
    private static func stored(
        _ description: TriggerDescription,
        _ codec: any TriggerCodec
    ) throws(ClientError) -> [UInt8] {
        let text = codec.encode(description)
        guard text.count <= Limits.triggerBytes else {
            throw ClientError(
                .tooLarge,
                "The trigger takes \(text.count) bytes in JSON, and may take "
                    + "\(Limits.triggerBytes)."
            )
        }
        do {
            let read = try codec.decodeTrigger(text, contentType: "application/json")
            guard read == description else {
                throw ClientError(.internal, "The trigger cannot be stored as it is.")
            }
            return text
        } catch {
            throw ClientError(.invalid, "The trigger cannot be stored: \(error)")
        }
    }

    package func removeTrigger(_ name: String) async throws(ClientError) -> TriggerView {
        try await answers.change { service throws(ClientError) in
            try service.remove(trigger: name, by: caller)
        }
    }

    package func triggers() async throws(ClientError) -> [TriggerView] {
        try await answers.read { $0.triggerViews() }
    }

    package func trigger(_ name: String) async throws(ClientError) -> TriggerView {
        try await answers.read { service throws(ClientError) in
            try service.view(ofTrigger: name)
        }
    }

    package func fireTrigger(
        _ name: String,
        data: [UInt8],
        idempotencyKey: String?
    ) async throws(ClientError) -> FiringView {
        guard data.count <= Limits.triggerDataBytes else {
            throw ClientError(
                .tooLarge,
                "The data have \(data.count) bytes, and may have \(Limits.triggerDataBytes)."
            )
        }
        if !data.isEmpty {
            let support = try await answers.live { service throws(ClientError) in
                try service.triggerSupport()
            }
            do {
                try support.codec.checkData(data)
            } catch {
                throw ClientError(.invalid, "The data cannot be read: \(error)")
            }
        }
        let identity =
            idempotencyKey.map { key in
                // Equal keys of two clients do not collide: a text with NUL is hashed.
                "key:" + TriggerIdentity.bounded(caller.isEmpty ? key : caller + "\u{0}" + key)
            }
            ?? "fire:\(Incarnation.drawn())"
        let occurrence = TriggerTable.Occurrence(
            identity: identity,
            data: String(decoding: data, as: UTF8.self)
        )
        return try await answers.change { service throws(ClientError) in
            guard let description = service.description(ofTrigger: name) else {
                throw ClientError(.notFound, "There is no trigger “\(name)”.")
            }
            guard description.source == .event else {
                throw ClientError(
                    .conflict,
                    "“\(description.source.kind)” fires trigger “\(name)”: only a trigger on "
                        + "“event” is fired by a client. To run its graph now, submit it: operon "
                        + "submit FILE"
                )
            }
            return try service.fire(trigger: name, occurrence, by: caller)
        }
    }

    package func suspendTrigger(
        _ name: String,
        _ request: SuspendRequest
    ) async throws(ClientError) -> TriggerView {
        try Self.check(reason: request.reason)
        let suspension = Suspension(
            by: caller,
            reason: request.reason,
            until: request.until?.time
        )
        return try await answers.change { service throws(ClientError) in
            try service.suspend(trigger: name, suspension, by: caller)
        }
    }

    package func resumeTrigger(_ name: String) async throws(ClientError) -> TriggerView {
        try await answers.change { service throws(ClientError) in
            try service.suspend(trigger: name, nil, by: caller)
        }
    }

    package func firings(
        ofTrigger name: String,
        limit: Int
    ) async throws(ClientError) -> [FiringView] {
        try await answers.read { service throws(ClientError) in
            try service.firings(ofTrigger: name, limit: limit)
        }
    }

    package func nextTicks(
        ofTrigger name: String,
        count: Int
    ) async throws(ClientError) -> [TickView] {
        try await answers.read { service throws(ClientError) in
            try service.nextTicks(ofTrigger: name, count: count)
        }
    }

    package func explain(trigger name: String) async throws(ClientError) -> TriggerExplanation {
        try await answers.read { service throws(ClientError) in
            try service.explanation(ofTrigger: name)
        }
    }

    package func deliver(
        _ delivery: WebhookDelivery,
        toTrigger name: String
    ) async throws(ClientError) -> FiringView {
        let (support, source, wall) = try await answers.live { service throws(ClientError) in
            let support = try service.triggerSupport()
            // Nobody without the secret learns which triggers there are.
            guard case .webhook(let source) = service.description(ofTrigger: name)?.source else {
                throw WebhookCheck.refusal
            }
            return (support, source, service.time.wall())
        }
        let identity: String
        switch WebhookCheck.check(delivery, source, support, at: wall) {
        case .valid(let found): identity = found
        case .invalid(let why):
            // The sender learns nothing of the cause.
            try await answers.live { service in
                let now = service.machineTime.now()
                guard let count = service.triggering.faults.count(.refusedWebhook, at: now) else {
                    return
                }
                service.logger.info(
                    "a webhook was refused",
                    metadata: ["trigger": "\(name)", "reason": "\(why)", "refusals": "\(count)"]
                )
            }
            throw WebhookCheck.refusal
        }
        guard delivery.body.count <= source.bodyBytes else {
            throw ClientError(
                .tooLarge,
                "The body has more than the \(source.bodyBytes) bytes that it may have."
            )
        }
        let text = try WebhookCheck.data(of: delivery, support.codec)
        let occurrence = TriggerTable.Occurrence(identity: identity, data: text)
        return try await answers.change { service throws(ClientError) in
            try service.admit(webhook: name, perMinute: source.perMinute)
            return try service.fire(trigger: name, occurrence, by: caller)
        }
    }
}

enum TriggerIdentity {
    /// The hash of these bytes, in hexadecimal digits.
    static func hash(of bytes: [UInt8]) -> String {
        ContentHash(of: bytes).bytes.map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }

    /// The text, or its hash if it is too long to be kept.
    static func bounded(_ text: String) -> String {
        let most = Limits.triggerIdentityBytes - 16
        let isPlain = text.utf8.count <= most && text.utf8.allSatisfy { (33...126).contains($0) }
        return isPlain ? text : hash(of: Array(text.utf8))
    }
}

/// Checks what a trigger will submit, as far as that is known when it is added.
package enum TriggerCheck {
    /// Checks a trigger as the coordinator does that is to keep it, but for its time zone.
    ///
    /// - Throws: An error whose description is a sentence.
    package static func check(
        _ trigger: TriggerDescription,
        _ codec: any TriggerCodec,
        _ limits: Limits = Limits()
    ) throws {
        if let last = trigger.onRemove {
            try check(try codec.graph(last, parameters: "{}", event: event(of: trigger)), limits)
        }
        let graph: GraphDescription
        do {
            graph = try codec.graph(
                trigger.graph,
                parameters: trigger.parameters,
                event: event(of: trigger)
            )
        } catch let error as TriggerValuesError {
            guard trigger.parameters.contains("${event") else { throw error }
            // What the data will be is not known now, so problems with values are passed over.
            let unknown = codec.unknownParameters(trigger.parameters, of: trigger.graph)
            guard unknown.isEmpty else {
                throw TriggerValuesError(unknown.joined(separator: "\n"))
            }
            return
        }
        if case .graph(let source) = trigger.source, source.name == graph.name {
            throw ClientError(
                .invalid,
                "Trigger “\(trigger.name)” waits for the end of graph “\(graph.name)” and submits "
                    + "a graph of that name: it would fire for ever."
            )
        }
        try check(graph, limits)
    }

    private static func check(_ graph: GraphDescription, _ limits: Limits) throws {
        // Dependencies on other graphs are resolved when the graph is submitted.
        guard
            !graph.operations.contains(where: { operation in
                operation.dependencies.contains { $0.name.contains("/") }
            })
        else { return }
        _ = try CompiledGraph.compile(graph, limits: limits)
    }

    private static func event(of trigger: TriggerDescription) -> String {
        let name = String(decoding: JSONString.quoted(trigger.name), as: UTF8.self)
        return """
            {"trigger":\(name),"source":"\(trigger.source.kind)","firing":1,\
            "identity":"1970-01-01T00:00:00Z","time":"1970-01-01T00:00:00Z","date":"1970-01-01",\
            "localTime":"1970-01-01T00:00:00+00:00","count":1,"data":null}
            """
    }
}
