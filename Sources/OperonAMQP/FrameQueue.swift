import NIOCore

/// Whole frames of one channel that are written a slice at a time, so that those of another channel
/// can go between them. A message that was begun has to be ended before the next of its channel.
struct FrameQueue {
    private var bytes = ByteBuffer()

    var isEmpty: Bool { bytes.readableBytes == 0 }

    mutating func append(_ frames: ByteBuffer) {
        if isEmpty { bytes = frames } else { bytes.writeImmutableBuffer(frames) }
    }

    /// The next frames, at most so many bytes of them, but one at least.
    mutating func next(bytesMax: Int) -> ByteBuffer? {
        var length = 0
        // Type, channel and size stand before a frame's payload, and its end octet behind it.
        while let size = bytes.getInteger(at: bytes.readerIndex + length + 3, as: UInt32.self) {
            let frame = Int(size) + 8
            if length > 0, length + frame > bytesMax { break }
            length += frame
        }
        let slice = bytes.readSlice(length: length)
        if isEmpty { bytes = ByteBuffer() }
        return slice
    }
}
