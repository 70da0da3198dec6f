package import OperonModel

/// Makes the sources that the process of a coordinator or a worker may watch.
package protocol TriggerSourceProvider: Sendable {
    /// The source as it is to be kept. A process is told by more than its number, which may belong
    /// to another one later.
    ///
    /// - Throws: `invalid` for a source that nobody can watch, `accessRefused` for one that this
    ///   process does not watch, `absent` for a process that does not run.
    func resolved(_ source: WatchedSource) throws(TriggerSourceError) -> WatchedSource

    /// - Throws: the same; `exhausted` if the system has no thread or descriptor left.
    func source(_ source: WatchedSource) throws(TriggerSourceError) -> any TriggerSource

    /// Ends what the sources share. To be called when none of them runs any more.
    func shutDown() async
}
