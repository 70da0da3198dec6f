package import OperonModel
package import OperonPorts

/// A real store under the simulated coordinator, whose process the test can kill at the store's
/// own crash points, and whose disk the test controls. Its calls return when their effects would be
/// seen by the coordinator; the simulator gives them their times.
package protocol SimulatedJournal: AnyObject {
    var limits: Limits { get }

    /// The number of commits and drops that the file has, from the first process on.
    var stored: Int { get }

    /// The process dies when it next reaches the crash point that `draw` chooses.
    func planDeath(_ draw: UInt64)

    /// No death is planned any more.
    func cancelDeath()

    /// Starts the next process on what the one before has left.
    func open() throws -> SimulatedStart

    /// Commits in one transaction. Like the calls below, it returns whether the process lives.
    func commit(_ batch: StoreBatch, by epoch: Epoch) throws -> Bool

    /// Lets the tables follow the journal if that is due.
    func project() throws -> Bool

    func sync() throws -> Bool

    func drop(_ graph: GraphID, by epoch: Epoch) throws -> Bool

    /// Ends the process, if it is not dead, and sets `stored` to what the file has then.
    ///
    /// - Parameter draw: chooses how much of what was not synced a power cut leaves; `nil`: the
    ///   machine lives on.
    func die(powerCut draw: UInt64?) throws

    /// What the open store has otherwise than the image, beside the state.
    func difference(from image: StoreImage) throws -> String?
}

/// How a start of a process on a store ended.
package enum SimulatedStart {
    case opened(StoredState)
    /// It died before it had the state.
    case died(epochIsRaised: Bool)
}
