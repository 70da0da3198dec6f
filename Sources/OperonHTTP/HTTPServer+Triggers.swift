import HTTPTypes
import OperonModel
import OperonPorts

// Routes for triggers.

extension HTTPServer {
    private static let path = "/v1/triggers/{trigger}"

    static let triggerRoutes: [Route] = [
        Route("GET", "/v1/triggers", .view) { call in
            .json(TriggersBody(triggers: try await call.client.triggers()))
        },
        Route(
            "POST",
            "/v1/triggers",
            .operate,
            body: .bytes(max: Limits.triggerBytes),
            query: ["replace"]
        ) { call in
            let view = try await call.client.addTrigger(
                call.body,
                contentType: call.headers[.contentType] ?? "",
                replace: try call.flag("replace")
            )
            return .json(view, created: true)
        },
        Route("GET", path, .view) { call in
            .json(try await call.client.trigger(call.trigger))
        },
        Route("DELETE", path, .operate) { call in
            .json(try await call.client.removeTrigger(call.trigger))
        },
        Route("POST", path + "/fire", .operate, body: .options) { call in
            let fields = try FireBody(json: call.body)
            let view = try await call.client.fireTrigger(
                call.trigger,
                data: fields.data,
                idempotencyKey: try call.headerText(
                    "Idempotency-Key",
                    bytesMax: Limits().nameBytes
                )
            )
            return .json(view)
        },
        Route("POST", path + "/suspend", .operate, body: .options) { call in
            let request = try call.json(SuspendBody.self).request
            guard request.wait == nil else {
                throw Failure.invalid("wait", "is not for triggers: leave it out")
            }
            return .json(try await call.client.suspendTrigger(call.trigger, request))
        },
        Route("POST", path + "/resume", .operate) { call in
            .json(try await call.client.resumeTrigger(call.trigger))
        },
        Route("GET", path + "/history", .view, query: ["limit"]) { call in
            let firings = try await call.client.firings(
                ofTrigger: call.trigger,
                limit: try call.limit(50)
            )
            return .json(FiringsBody(firings: firings))
        },
        Route("GET", path + "/next", .view, query: ["limit"]) { call in
            let ticks = try await call.client.nextTicks(
                ofTrigger: call.trigger,
                count: try call.limit(10)
            )
            return .json(TicksBody(ticks: ticks))
        },
        Route("GET", path + "/explain", .view) { call in
            .json(try await call.client.explain(trigger: call.trigger))
        },
        Route(
            "POST",
            "/v1/hooks/{trigger}",
            .signed,
            body: .bytes(max: Limits.triggerDataBytes)
        ) { call in
            var delivery = WebhookDelivery(signature: "", delivery: "", body: call.body)
            for kind in WebhookSource.Signature.allCases {
                let fields = WebhookDelivery.fields(kind)
                if let text = call.header(fields.signature) {
                    // Two kinds of signatures: none of them counts.
                    guard delivery.signature.isEmpty else { break }
                    delivery.signature = text
                    delivery.delivery = call.header(fields.delivery) ?? ""
                }
            }
            let firing = try await call.client.deliver(delivery, toTrigger: call.trigger)
            return .json(HookBody(number: firing.number, isRepeated: firing.isRepeated))
        },
    ]
}

extension Call {
    fileprivate func header(_ name: String) -> String? {
        HTTPField.Name(name).flatMap { headers[$0] }
    }
}

struct TriggersBody: Codable { let triggers: [TriggerView] }
struct FiringsBody: Codable { let firings: [FiringView] }
struct TicksBody: Codable { let ticks: [TickView] }

/// What the sender of a webhook learns.
struct HookBody: Codable {
    let number: UInt64
    let isRepeated: Bool?
}

/// The data with which a client fires a trigger, kept as they were written, so that no number loses
/// a digit.
struct FireBody {
    let data: [UInt8]

    private struct Fields: Decodable {
        init(from decoder: any Decoder) throws { _ = try StrictFields(decoder, ["data"]) }
    }

    init(json bytes: [UInt8]) throws(Failure) {
        guard !bytes.isEmpty else {
            data = []
            return
        }
        _ = try JSONBytes.read(Fields.self, bytes)
        data = JSONMembers.value(of: "data", in: bytes).map { Array($0) } ?? []
    }
}
