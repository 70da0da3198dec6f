/// A copy of a store on its way to somewhere: one file that could take its place.
package struct StoreBackup: Sendable {
    /// Bytes of the whole file.
    package var byteCount: Int
    /// They come as fast as they are taken. Whoever lets go of it needs no more of them.
    package var pieces: AsyncThrowingStream<[UInt8], any Error>

    package init(byteCount: Int, pieces: AsyncThrowingStream<[UInt8], any Error>) {
        self.byteCount = byteCount
        self.pieces = pieces
    }
}
