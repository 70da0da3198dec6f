import Foundation

/// The variables of this process. Read here and in no target below.
enum Environment {
    static var current: [String: String] { ProcessInfo.processInfo.environment }

    static var hostName: String { ProcessInfo.processInfo.hostName }

    static var processID: Int32 { ProcessInfo.processInfo.processIdentifier }

    static var processorCount: Int { ProcessInfo.processInfo.activeProcessorCount }
}
