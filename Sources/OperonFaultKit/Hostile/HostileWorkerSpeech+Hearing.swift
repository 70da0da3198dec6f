import OperonModel
import OperonWire

extension HostileWorkerSpeech {
    /// Learns from a message of the coordinator, so that the next ones are nearer to what it takes.
    ///
    /// - Returns: what it was, for a tally.
    package mutating func hear(_ body: [UInt8]) -> [String] {
        let envelope: CoordinatorEnvelope
        do {
            envelope = try Wire.decodeCoordinator(body)
        } catch {
            return ["unreadable"]
        }
        reign = envelope.reign.rawValue
        received = max(received, envelope.sequence)
        switch envelope.body {
        case .welcome(let welcome):
            epoch = UInt64(envelope.epoch.rawValue)
            acknowledged = welcome.acknowledged
            return ["welcome"]
        case .dispatch(let dispatch):
            acknowledged = dispatch.acknowledged
            for operation in dispatch.operations { take(operation.held) }
            return dispatch.operations.map { _ in "attempt" }
        case .control(let control):
            acknowledged = control.acknowledged
            if let first = control.resendFrom { repeatEvents(from: first) }
            return ["control"] + control.verdicts.map { _ in "verdict" }
        case .resync: return ["resync"]
        case .refused(let reason): return ["refused: \(reason)"]
        case .chunks: return ["chunks"]
        case .watch(let orders):
            for case .begin(let watch, _, _) in orders { self.watch = watch.rawValue }
            return orders.map { _ in "watch" }
        }
    }
}
