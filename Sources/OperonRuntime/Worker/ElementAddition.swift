import OperonCore
import OperonModel
import OperonPorts
import OperonWire

/// Adds the elements of an operation that is repeated for an output, piece by piece. Another
/// attempt adds the same operations again, which has no effect.
struct ElementAddition: Sendable {
    /// The most operations in one piece. Making them takes milliseconds, so that a cooperative
    /// thread is not held for long.
    private static let pieceMax = 500
    /// For `OperationError.thrown`.
    private static let errorType = "ForEachError"

    let reader: any OutputElementReader
    let limits: Limits

    /// The kind of operations that add elements.
    var kind: RegisteredKind {
        RegisteredKind(name: Work.forEachKind) { invocation in await run(invocation) }
    }

    private func run(_ invocation: Invocation) async -> InvocationEnd {
        do throws(OutputElementError) {
            let elements = try await elements(of: invocation).get()
            // Everything is made once before anything is added, so that an output that is wrong
            // somewhere adds nothing. The operations of a large graph are not kept meanwhile.
            if let end = try await send(elements, of: invocation, adds: false) { return end }
            if let end = try await send(elements, of: invocation, adds: true) { return end }
            let count = elements.count == 1 ? "1 element" : "\(elements.count) elements"
            invocation.log("\(count) of “\(elements.name)”")
            return .returned(.empty)
        } catch {
            return Self.failed(error.message)
        }
    }

    /// Reads the output on a thread of its own: parsing a mebibyte and comparing all labels takes
    /// longer than a cooperative thread may be held. There are no more such threads than slots.
    private func elements(
        of invocation: Invocation
    ) async -> Result<any OutputElements, OutputElementError> {
        let reader = reader
        let inputs = invocation.operation.inputs
        let input = invocation.input
        @Sendable func read() -> Result<any OutputElements, OutputElementError> {
            do throws(OutputElementError) {
                return .success(
                    try reader.elements(of: input) { name throws(OutputElementError) in
                        try Self.output(of: name, in: inputs)
                    }
                )
            } catch {
                return .failure(error)
            }
        }
        return await withCheckedContinuation { continuation in
            do throws(SystemError) {
                try OwnThread.start("operon-elements") { continuation.resume(returning: read()) }
            } catch {
                // The system has no thread left: it is done here.
                continuation.resume(returning: read())
            }
        }
    }

    private static func failed(_ message: String) -> InvocationEnd {
        .failed(.thrown(type: errorType, message: message, payload: []))
    }

    /// The operation that is repeated for waits for its output first of all.
    private static func output(
        of name: String,
        in inputs: [NamedInput]
    ) throws(OutputElementError) -> Payload? {
        let input = inputs.first { $0.name == name } ?? inputs.first
        guard input?.isDropped != true else {
            throw OutputElementError("the output of “\(name)” is not kept any more")
        }
        return input?.output
    }

    /// Makes all operations, and checks them or adds them. Returns how the attempt ends if it
    /// cannot go on.
    private func send(
        _ elements: any OutputElements,
        of invocation: Invocation,
        adds: Bool
    ) async throws(OutputElementError) -> InvocationEnd? {
        var elements = elements
        while true {
            if invocation.isCancelled() { return .stopped }
            let piece = try elements.next(atMost: Self.pieceMax)
            guard !piece.isEmpty else { return nil }
            if adds {
                if let end = await add(piece[...], of: invocation) { return end }
            } else if let refusal = refusal(of: piece) {
                return Self.failed("\(refusal)")
            }
            await Task.yield()
        }
    }

    /// What a coordinator would say to these operations in any graph.
    private func refusal(of operations: [OperationDescription]) -> Refusal? {
        do throws(Refusal) {
            try GraphDescription(name: "elements", operations: operations).check(limits)
            return nil
        } catch {
            return error
        }
    }

    /// Adds operations, in halves if they are too large for one addition.
    private func add(
        _ operations: ArraySlice<OperationDescription>,
        of invocation: Invocation
    ) async -> InvocationEnd? {
        let graph = GraphDescription(name: "elements", operations: Array(operations))
        let body: [UInt8]
        do throws(WireError) {
            body = try StoreFormat.encode(graph, failFast: false)
        } catch {
            return Self.failed(error.message)
        }
        if body.count > limits.additionBytes, operations.count > 1 {
            let middle = operations.startIndex + operations.count / 2
            if let end = await add(operations[..<middle], of: invocation) { return end }
            return await add(operations[middle...], of: invocation)
        }
        switch await invocation.ask(.add(body)) {
        case .added: return nil
        case .refused(let refusal): return Self.failed("\(refusal)")
        case .ended: return .stopped
        case .awaited, .read:
            return Self.failed("the coordinator gave the answer to another request")
        }
    }
}
