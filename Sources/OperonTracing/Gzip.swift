import CZlib

/// The format of gzip, RFC 1952.
enum Gzip {
    /// The largest window of zlib, plus what makes it write the format of gzip (`deflateInit2`).
    private static let windowBits: Int32 = 15 + 16
    /// zlib's default.
    private static let memoryLevel: Int32 = 8

    /// - Returns: `nil` if zlib has no memory, or does not take so many bytes at once.
    static func compress(_ bytes: [UInt8]) -> [UInt8]? {
        var stream = unsafe z_stream()
        let began = unsafe deflateInit2_(
            &stream,
            Z_DEFAULT_COMPRESSION,
            Z_DEFLATED,
            windowBits,
            memoryLevel,
            Z_DEFAULT_STRATEGY,
            ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size)
        )
        guard began == Z_OK else { return nil }
        defer { _ = unsafe deflateEnd(&stream) }
        var input = bytes
        // All of it fits, so one call ends the stream.
        let bound = Int(unsafe deflateBound(&stream, uLong(bytes.count)))
        guard let available = UInt32(exactly: bytes.count), let room = UInt32(exactly: bound) else {
            return nil
        }
        var isWhole = false
        let compressed = unsafe [UInt8](unsafeUninitializedCapacity: bound) { output, count in
            unsafe input.withUnsafeMutableBufferPointer { input in
                unsafe stream.next_in = input.baseAddress
                unsafe stream.avail_in = available
                unsafe stream.next_out = output.baseAddress
                unsafe stream.avail_out = room
                isWhole = unsafe deflate(&stream, Z_FINISH) == Z_STREAM_END
            }
            count = unsafe bound - Int(stream.avail_out)
        }
        return isWhole ? compressed : nil
    }
}
