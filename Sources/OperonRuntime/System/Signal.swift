/// Wakes one waiting task, once for any number of raises before it wakes.
package struct Signal: Sendable {
    package let raised: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    package init() {
        (raised, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    package func raise() { continuation.yield() }

    package func finish() { continuation.finish() }
}
