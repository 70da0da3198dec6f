import OperonCore
package import OperonModel

/// What a coordinator has decided to send and its transport has not taken yet.
///
/// Operations that wait here for the same worker travel in one message, unless something else was
/// said to it between them: the busier the transport, the larger the messages. Nothing waits for
/// company, and which worker gets which operation was decided before.
package struct CoordinatorOutbox: Sendable {
    package struct Item: Sendable {
        package let receiver: Receiver
        package let priority: UInt8
        package fileprivate(set) var envelope: CoordinatorEnvelope

        /// What it takes in memory, roughly.
        var approximateBytes: Int {
            switch envelope.body {
            case .dispatch(let dispatch):
                dispatch.operations.reduce(0) { $0 + $1.approximateBytes }
            case .control(let control):
                control.verdicts.reduce(64 * control.orders.count) { $0 + $1.approximateBytes }
            case .welcome, .resync, .refused, .chunks: 0
            }
        }
    }

    package enum Receiver: Hashable, Sendable {
        case worker(WorkerAddress)
        case everyWorker
    }

    /// The last message to a worker, if more operations may join it.
    private struct Door {
        let place: Int
        var operations: Int
        var bytes: Int
    }

    /// A message that others have to wait for does not grow beyond this.
    static let joinedBytesMax = 64 << 10

    private let operationsPerMessage: Int
    /// `nil`: a later one says the same and more.
    private var items: [Item?] = []
    private var doors: [WorkerAddress: Door] = [:]
    /// Where the last answer to a beat of each worker is.
    private var answers: [WorkerAddress: Int] = [:]

    /// `operationsPerMessage`: at most, from 1.
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
                    // A transport that takes nothing must not pile up answers to every beat.
                    if let old = answers[address] { items[old] = nil }
                    answers[address] = items.count
                }
                break
            }
            let bytes = dispatch.operations.reduce(0) { $0 + $1.approximateBytes }
            // One whose earlier attempt may still run elsewhere travels alone: nobody waits with it
            // for its start to be announced.
            let isAlone = dispatch.operations.contains { $0.announcesStart }
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

    /// Everything that waits, in the order in which it is to be sent.
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
    /// As if both messages had arrived one after the other.
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

extension DispatchedOperation {
    /// What it takes in a message: no less, but for what numbers take.
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
    /// What it takes in a message, to within what numbers take.
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
