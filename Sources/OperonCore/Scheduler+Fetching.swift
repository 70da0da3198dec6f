package import OperonModel

// Workers request outputs that were too large for a dispatch. This file decides whether they may;
// the shell and its `OutputServer` decide what an answer contains and when it is sent.
extension Scheduler {
    /// A worker's request that is to be answered.
    package struct FetchOrder: Hashable, Sendable {
        package var address: WorkerAddress
        package var request: OutputRequest
        /// Whether the attempt is in flight and belongs to the sender.
        package var isOwned: Bool
        /// A beat listed the request: it was made before, and may have been answered.
        package var isRepeated: Bool

        package init(
            address: WorkerAddress,
            request: OutputRequest,
            isOwned: Bool,
            isRepeated: Bool
        ) {
            self.address = address
            self.request = request
            self.isOwned = isOwned
            self.isRepeated = isRepeated
        }
    }

    func order(
        _ requests: [OutputRequest],
        from worker: Int,
        isRepeated: Bool,
        into effects: inout Effects
    ) {
        for request in requests {
            let place =
                configuration.violation == .servesStrangers
                ? attemptPlace(of: request.held)
                : attemptPlace(of: request.held, ownedBy: worker)
            effects.fetches.append(
                FetchOrder(
                    address: workers[worker].address,
                    request: request,
                    isOwned: place != nil,
                    isRepeated: isRepeated
                )
            )
        }
    }
}
