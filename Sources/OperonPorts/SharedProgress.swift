import NIOConcurrencyHelpers
package import OperonModel

/// The progress of a graph that several readers have in common. It is encoded at most once.
package final class SharedProgress: Sendable {
    package let view: GraphProgressView
    private let encoded = NIOLockedValueBox<[UInt8]?>(nil)

    package init(_ view: GraphProgressView) { self.view = view }

    /// Its encoded form, which is the same for all readers.
    package func encoded(
        by encode: (GraphProgressView) throws -> [UInt8]
    ) rethrows -> [UInt8] {
        try encoded.withLockedValue { encoded in
            if let encoded { return encoded }
            let bytes = try encode(view)
            encoded = bytes
            return bytes
        }
    }
}

/// The progress of a graph, at a pace. A reader that is too slow gets only the latest progress.
package typealias ProgressUpdates = AsyncThrowingStream<SharedProgress, any Error>
