/// Decides which process coordinates. A coordinator acquires the leadership before it opens its
/// store and before it connects to a broker.
package protocol Leadership: Sendable {
    /// Returns once this process leads. An implementation may wait for another process to end.
    ///
    /// - Throws: `StoreError` (`held`) if another process leads and this one does not wait.
    func acquire() async throws

    /// Ends the leadership. Called once nothing uses the store any more. A second call has no
    /// effect.
    func release() async
}
