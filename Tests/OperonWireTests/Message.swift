import OperonModel
import OperonWire

/// A message of either side, so that one test serves both.
enum Message: Hashable, Sendable {
    case coordinator(CoordinatorEnvelope)
    case worker(WorkerEnvelope)

    func encoded(limits: Limits = Limits()) throws(WireError) -> [UInt8] {
        switch self {
        case .coordinator(let envelope): try Wire.encode(envelope, limits: limits)
        case .worker(let envelope): try Wire.encode(envelope, limits: limits)
        }
    }

    /// Decodes as a message of the same side as this one.
    func decodingSameSide(
        _ bytes: [UInt8],
        limits: Limits = Limits()
    ) throws(WireError) -> Message {
        switch self {
        case .coordinator: .coordinator(try Wire.decodeCoordinator(bytes, limits: limits))
        case .worker: .worker(try Wire.decodeWorker(bytes, limits: limits))
        }
    }

    /// Whether some of its operations were set aside: those are not encoded again.
    var isPartlyUnreadable: Bool {
        guard case .coordinator(let envelope) = self, case .dispatch(let dispatch) = envelope.body
        else { return false }
        return !dispatch.unreadable.isEmpty
    }

    static func from(
        coordinator body: CoordinatorMessage,
        sequence: UInt64 = 7
    ) -> Message {
        .coordinator(
            CoordinatorEnvelope(
                reign: Reign(rawValue: 0x0123_4567_89AB_CDEF),
                epoch: Epoch(rawValue: 3),
                sequence: sequence,
                sender: .none,
                body: body
            )
        )
    }

    static func from(worker body: WorkerMessage, sequence: UInt64 = 9) -> Message {
        .worker(
            WorkerEnvelope(
                reign: Reign(rawValue: 0x0123_4567_89AB_CDEF),
                epoch: Epoch(rawValue: 3),
                sequence: sequence,
                sender: WorkerIdentity(
                    name: "rack-1",
                    incarnation: Incarnation(rawValue: 0xFEDC_BA98_7654_3210),
                    connection: 2
                ),
                body: body
            )
        )
    }
}

/// The error of decoding, for `#expect(… == …)`.
func decodingError(_ bytes: [UInt8], like message: Message, limits: Limits = Limits())
    -> WireError.Code?
{
    do throws(WireError) {
        _ = try message.decodingSameSide(bytes, limits: limits)
        return nil
    } catch {
        return error.code
    }
}
