import NIOCore

/// Whole frames of one channel, written a slice at a time so that frames of another channel can go
/// between them. A message must be completed before the next message on its channel begins.
struct FrameQueue {
    private var bytes = ByteBuffer()

    var isEmpty: Bool { bytes.readableBytes == 0 }

    mutating func append(_ frames: ByteBuffer) {
        if isEmpty { bytes = frames } else { bytes.writeImmutableBuffer(frames) }
    }

    /// The next frames: at most this many bytes, but at least one frame.
    mutating func next(bytesMax: Int) -> ByteBuffer? {
        var length = 0
        // Type, channel and size come before a frame's payload; an end octet follows it.
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
