/// A copy of a store in transfer: one file that can replace the store.
package struct StoreBackup: Sendable {
    /// Bytes of the whole file.
    package var byteCount: Int
    /// The content, produced as fast as it is consumed. A consumer that releases the stream ends
    /// the transfer.
    package var pieces: AsyncThrowingStream<[UInt8], any Error>

    package init(byteCount: Int, pieces: AsyncThrowingStream<[UInt8], any Error>) {
        self.byteCount = byteCount
        self.pieces = pieces
    }
}
