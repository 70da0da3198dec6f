import OperonCore
package import OperonModel

/// The messages that a coordinator has decided to send and its transport has not taken yet.
///
/// Operations that wait here for the same worker travel in one message, unless another message to
/// that worker comes between them: the busier the transport, the larger the messages. No operation
/// waits here for others to join it, and the worker of each was chosen before.
package struct CoordinatorOutbox: Sendable {
    package struct Item: Sendable {
        package let receiver: Receiver
        package let priority: UInt8
        package fileprivate(set) var envelope: CoordinatorEnvelope

        /// The approximate size in memory, in bytes.
        var approximateBytes: Int {
            switch envelope.body {
            case .dispatch(let dispatch): dispatch.approximateBytes
            case .control(let control):
                control.verdicts.reduce(64 * control.orders.count) { $0 + $1.approximateBytes }
            case .watch(let orders): orders.reduce(0) { $0 + $1.approximateBytes }
            case .welcome, .resync, .refused, .chunks: 0
            }
        }
    }

    package enum Receiver: Hashable, Sendable {
        case worker(WorkerAddress)
        case everyWorker
    }

    /// The last message to a worker, if more operations may still join it.
    private struct Door {
        let place: Int
        var operations: Int
        var bytes: Int
    }

    /// A joined message does not grow beyond this, because other messages wait while it is sent.
    static let joinedBytesMax = 64 << 10

    private let operationsPerMessage: Int
    /// `nil`: a later item replaced this one.
    private var items: [Item?] = []
    private var doors: [WorkerAddress: Door] = [:]
    /// The index in `items` of the last answer to a beat of each worker.
    private var answers: [WorkerAddress: Int] = [:]

    /// - Parameter operationsPerMessage: The most operations that travel in one message, from 1.
    package init(operationsPerMessage: Int) { self.operationsPerMessage = operationsPerMessage }

    package var isEmpty: Bool { items.isEmpty }

    package mutating func append(
        _ envelope: CoordinatorEnvelope,
        to receiver: Receiver,
        priority: UInt8
    ) {
        switch receiver {
        case .everyWorker: doors.removeAll(keepingCapacity: true)
        case .worker(let address):
            guard case .dispatch(let dispatch) = envelope.body else {
                doors[address] = nil
                if case .control(let control) = envelope.body, control.answers != nil {
                    // Answers to beats must not pile up while the transport takes nothing.
                    if let old = answers[address] { items[old] = nil }
                    answers[address] = items.count
                }
                break
            }
            let bytes = dispatch.approximateBytes
            // An operation whose earlier attempt may still run elsewhere travels alone, so that no
            // other operation waits for its start to be announced.
            let isAlone = dispatch.operations.indices.contains { place in
                dispatch.operations[place].announcesStart
            }
            var door = Door(place: items.count, operations: dispatch.operations.count, bytes: bytes)
            if !isAlone, let open = doors[address], items[open.place]?.priority == priority,
                open.operations + door.operations <= operationsPerMessage,
                open.bytes + bytes <= Self.joinedBytesMax
            {
                door = Door(
                    place: open.place,
                    operations: open.operations + door.operations,
                    bytes: open.bytes + bytes
                )
                items[door.place]?.envelope.join(dispatch, sequence: envelope.sequence)
                doors[address] = door
                return
            }
            doors[address] = isAlone ? nil : door
        }
        items.append(Item(receiver: receiver, priority: priority, envelope: envelope))
    }

    /// Takes everything that waits, in sending order.
    package mutating func take() -> [Item] {
        defer {
            items.removeAll(keepingCapacity: true)
            doors.removeAll(keepingCapacity: true)
            answers.removeAll(keepingCapacity: true)
        }
        return items.compactMap(\.self)
    }
}

extension CoordinatorEnvelope {
    /// Appends the operations, as if both messages had arrived one after the other.
    fileprivate mutating func join(_ later: Dispatch, sequence: UInt64) {
        guard case .dispatch(var dispatch) = body else {
            preconditionFailure("only a dispatch has a door")
        }
        // Gives up the second reference to the operations, so that they are not copied.
        body = .resync
        dispatch.operations += later.operations
        dispatch.acknowledged = later.acknowledged
        body = .dispatch(dispatch)
        self.sequence = sequence
    }
}

extension Dispatch {
    /// By index, because a loop over the operations would copy each of them.
    fileprivate var approximateBytes: Int {
        operations.indices.reduce(0) { $0 + operations[$1].approximateBytes }
    }
}

extension DispatchedOperation {
    /// An upper bound of its size in a message, apart from the encoding of numbers.
    var approximateBytes: Int {
        var bytes = 128 + name.utf8.count + graphName.utf8.count + queue.utf8.count
        bytes += traceParent.utf8.count + work.byteCount
        if case .registered(let kind, _) = work { bytes += kind.utf8.count }
        for input in inputs {
            bytes += 16 + input.name.utf8.count
            if let output = input.output {
                bytes += output.bytes.count + output.contentType.utf8.count
            }
            if let reference = input.reference { bytes += 64 + reference.contentType.utf8.count }
        }
        return bytes
    }
}

extension Verdict {
    /// Its size in a message, apart from the encoding of numbers.
    fileprivate var approximateBytes: Int {
        let fixed = 32
        switch content {
        case .added, .again: return fixed
        case .ended(let outcomes): return fixed + outcomes.count
        case .output(let output):
            return fixed + (output?.bytes.count ?? 0) + (output?.contentType.utf8.count ?? 0)
        case .refused(let refusal): return fixed + "\(refusal)".utf8.count
        }
    }
}
