import Foundation

/// The variables of this process and what the system says of it. Read here, for programs, and in
/// no target below.
package enum Environment {
    package static var current: [String: String] { ProcessInfo.processInfo.environment }

    package static var hostName: String { ProcessInfo.processInfo.hostName }

    package static var processID: Int32 { ProcessInfo.processInfo.processIdentifier }

    package static var processorCount: Int { ProcessInfo.processInfo.activeProcessorCount }
}
