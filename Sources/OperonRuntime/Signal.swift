/// Wakes one waiting task, however often it is raised meanwhile.
struct Signal: Sendable {
    let raised: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() {
        (raised, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    func raise() { continuation.yield() }

    func finish() { continuation.finish() }
}
