package import OperonModel

// Workers ask for outputs that were too large for a dispatch. Whether they may is decided here;
// what the answer is made of, and when it is sent, is for the shell and its `OutputDesk`.
extension Scheduler {
    /// A request of a worker that is to be answered.
    package struct FetchOrder: Hashable, Sendable {
        package var address: WorkerAddress
        package var request: OutputRequest
        /// The attempt is in flight and the sender's.
        package var isOwned: Bool
        /// A beat listed it: it was asked before, and may have been answered.
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
            effects.fetches.append(
                FetchOrder(
                    address: workers[worker].address,
                    request: request,
                    isOwned: attemptPlace(of: request.held, ownedBy: worker) != nil,
                    isRepeated: isRepeated
                )
            )
        }
    }
}
