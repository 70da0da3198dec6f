package import OperonModel
import Synchronization

/// What several readers are shown of the same thing. It is encoded at most once.
package final class SharedView<View: Sendable>: Sendable {
    package let view: View
    private let encoded = Mutex<[UInt8]?>(nil)

    package init(_ view: View) { self.view = view }

    /// Its encoded form, which is the same for all readers.
    package func encoded(by encode: (View) throws -> [UInt8]) rethrows -> [UInt8] {
        try encoded.withLock { encoded in
            if let encoded { return encoded }
            let bytes = try encode(view)
            encoded = bytes
            return bytes
        }
    }
}

/// What is shown of one thing, at a pace. A reader that is too slow gets only the latest.
package typealias SharedUpdates<View: Sendable> = AsyncThrowingStream<SharedView<View>, any Error>

/// The progress of a graph, at a pace.
package typealias ProgressUpdates = SharedUpdates<GraphProgressView>

/// The status of the cluster, at a pace.
package typealias StatusUpdates = SharedUpdates<ClusterView>
