import OperonCore
import OperonModel
import OperonPorts
import OperonTestKit
import OperonWire

// A worker that is let in and says what it likes, as bytes. It gets nothing, and what becomes of
// the operations of others does not change.
extension ShellSimulation {
    func intrude() {
        guard !hasHealed, var intruder else { return }
        machine.after(intruder.pause()) { self.intrude() }
        defer { self.intruder = intruder }
        guard let process, process.transport.isUp else { return }
        let envelope = intruder.message(
            reign,
            process.epoch,
            addition: Self.strangeAddition,
            at: machine.now
        )
        // benign: what cannot be encoded cannot be sent.
        guard let body = try? Wire.encode(envelope, limits: scenario.limits) else { return }
        if case .beat = envelope.body { post(body, .beats) } else { post(body, .events) }
    }

    private static let strangeAddition: [UInt8] = {
        var graph = GraphDescription(name: "added")
        graph.operations = [OperationDescription(name: "strange", work: .nothing)]
        do throws(WireError) {
            return try StoreFormat.encode(graph, failFast: false)
        } catch {
            preconditionFailure("one operation has a stored form: \(error)")
        }
    }()

    static func isIntruder(_ address: WorkerAddress) -> Bool {
        address.incarnation.rawValue >> 63 == 1
    }

    /// It sees what others are given, and must be given nothing itself.
    func overhear(_ body: [UInt8], to address: WorkerAddress) {
        guard intruder != nil else { return }
        do throws(WireError) {
            let isIntruder = Self.isIntruder(address)
            switch try Wire.decodeCoordinator(body, limits: scenario.limits).body {
            case .dispatch(let dispatch):
                if isIntruder { ledger.breaks("a worker of another queue is given operations") }
                for operation in dispatch.operations { intruder?.overhear(operation.held) }
            case .chunks(let chunks) where isIntruder:
                for chunk in chunks {
                    guard case .bytes = chunk.content else { continue }
                    ledger.breaks("an output is sent to a worker that does not need it")
                }
            case .chunks, .control, .refused, .resync, .watch, .welcome: return
            }
        } catch {
            ledger.breaks("a worker cannot read what it is sent: \(error)")
        }
    }
}
