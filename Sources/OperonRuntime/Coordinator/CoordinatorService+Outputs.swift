import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonWire

// Outputs that were too large to travel with the operations that take them; workers fetch them in
// pieces.
extension CoordinatorService {
    nonisolated func sendOutputs() async {
        for await _ in outputSignal.raised {
            while let (address, envelope) = await nextOutputs() {
                do throws(WireError) {
                    let body = try Wire.encode(envelope, limits: limits)
                    guard let body = sealed(body, to: address, lane: .outputs) else { continue }
                    await transport.sendBulk(body, to: address)
                } catch {
                    // The worker's next beat asks again.
                    logger.error("outputs not sent", metadata: ["reason": "\(error)"])
                }
            }
        }
    }

    private func nextOutputs() -> (WorkerAddress, CoordinatorEnvelope)? {
        guard let (address, answers) = outputServer.next() else { return nil }
        let chunks = answers.map { answer in
            switch answer {
            case .gone(let number): OutputChunk(number: number, content: .gone)
            case .sent(let number): OutputChunk(number: number, content: .sent)
            case .piece(let request):
                OutputChunk(
                    number: request.number,
                    content: piece(request).map { .bytes($0) } ?? .missing
                )
            }
        }
        return (address, envelope(.chunks(chunks), sequence: 0))
    }

    private func piece(_ request: OutputRequest) -> [UInt8]? {
        let graph = request.operation.graph
        return catalog.contains(graph) ? catalog[graph].piece(request) : nil
    }
}
