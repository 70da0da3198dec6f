import OperonFaultKit

// Messages of ours with one thing that may be wrong.

extension RawMessage {
    /// An envelope of a coordinator with the header in order.
    static func coordinator(_ body: (inout RawMessage) -> Void) -> [UInt8] {
        RawMessage { envelope in
            envelope.integer(1, 1)
            envelope.fixed(3, 42)
            envelope.integer(4, 1)
            envelope.integer(5, 1)
            body(&envelope)
        }.bytes
    }

    /// An envelope of a worker with the header in order.
    static func worker(_ body: (inout RawMessage) -> Void) -> [UInt8] {
        RawMessage { envelope in
            envelope.integer(1, 1)
            envelope.fixed(3, 42)
            envelope.integer(4, 1)
            envelope.integer(5, 1)
            envelope.message(6) { sender in
                sender.string(1, "w")
                sender.fixed(2, 7)
                sender.integer(3, 1)
            }
            body(&envelope)
        }.bytes
    }

    /// An input of an operation that is fetched from 2/6, with one thing that may be wrong.
    mutating func reference(
        byteCount: UInt64 = 1,
        hashBytes: Int = 32,
        hasOutput: Bool = false,
        behind: [UInt8] = []
    ) {
        message(10) { input in
            input.string(1, "i")
            if hasOutput { input.message(2) }
            input.message(3) { reference in
                reference.integer(1, 2)
                reference.integer(2, 6)
                reference.integer(3, byteCount)
                reference.data(4, [UInt8](repeating: 1, count: hashBytes))
                reference.append(behind)
            }
        }
    }

    /// The attempt 1.5 at the operation 2/6.
    mutating func held(_ field: UInt64 = 1) {
        message(field) { held in
            held.integer(1, 1)
            held.integer(2, 5)
            held.integer(3, 2)
            held.integer(4, 6)
        }
    }
}
