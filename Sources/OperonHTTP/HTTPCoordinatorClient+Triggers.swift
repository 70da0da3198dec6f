import AsyncHTTPClient
import NIOCore
import NIOHTTP1
package import OperonModel
package import OperonPorts

// The methods of the client that concern triggers, as requests.
extension HTTPCoordinatorClient {
    package func triggers() async throws(ClientError) -> [TriggerView] {
        try await value(Ask(.GET, "triggers"), TriggersBody.self).triggers
    }

    package func trigger(_ name: String) async throws(ClientError) -> TriggerView {
        try await value(Ask(.GET, "triggers", name))
    }

    package func addTrigger(
        _ body: [UInt8],
        contentType: String,
        replace: Bool
    ) async throws(ClientError) -> TriggerView {
        var ask = Ask(.POST, "triggers")
        if replace { ask = ask.with("replace", true) }
        ask.body = .bytes(ByteBuffer(bytes: body))
        ask.headers.replaceOrAdd(name: "Content-Type", value: contentType)
        return try await value(ask)
    }

    package func removeTrigger(_ name: String) async throws(ClientError) -> TriggerView {
        try await value(Ask(.DELETE, "triggers", name))
    }

    package func fireTrigger(
        _ name: String,
        data: [UInt8],
        idempotencyKey: String?
    ) async throws(ClientError) -> FiringView {
        var ask = Ask(.POST, "triggers", name, "fire")
        if !data.isEmpty {
            let body = Array("{\"data\":".utf8) + data + "}".utf8
            ask.body = .bytes(ByteBuffer(bytes: body))
            ask.headers.replaceOrAdd(name: "Content-Type", value: "application/json")
        }
        if let idempotencyKey {
            ask.headers.replaceOrAdd(name: "Idempotency-Key", value: idempotencyKey)
        }
        return try await value(ask)
    }

    package func suspendTrigger(
        _ name: String,
        _ request: SuspendRequest
    ) async throws(ClientError) -> TriggerView {
        try await value(Ask(.POST, "triggers", name, "suspend").with(json: request))
    }

    package func resumeTrigger(_ name: String) async throws(ClientError) -> TriggerView {
        try await value(Ask(.POST, "triggers", name, "resume"))
    }

    package func firings(
        ofTrigger name: String,
        limit: Int
    ) async throws(ClientError) -> [FiringView] {
        let ask = Ask(.GET, "triggers", name, "history").with("limit", limit)
        return try await value(ask, FiringsBody.self).firings
    }

    package func nextTicks(
        ofTrigger name: String,
        count: Int
    ) async throws(ClientError) -> [TickView] {
        let ask = Ask(.GET, "triggers", name, "next").with("limit", count)
        return try await value(ask, TicksBody.self).ticks
    }

    package func explain(trigger name: String) async throws(ClientError) -> TriggerExplanation {
        try await value(Ask(.GET, "triggers", name, "explain"))
    }

    /// A coordinator elsewhere checks signatures itself, and tells senders no more than a number.
    package func deliver(
        _ delivery: WebhookDelivery,
        toTrigger name: String
    ) async throws(ClientError) -> FiringView {
        throw ClientError(.invalid, "Send a webhook to /v1/hooks/\(name) of the coordinator.")
    }
}
