import Foundation

/// The wall clock of a program, which a test can set. Clocks that count from the start of the
/// machine stay as they are.
package struct SteppedClock: Sendable {
    /// Has the offset: eight bytes, which the program looks at whenever it asks for the time.
    private let file: String
    private let library: String

    /// Makes a clock in this folder, which shows the machine's time.
    ///
    /// - Throws: if the library cannot be compiled that programs load for it.
    package init(in folder: String) async throws {
        file = folder + "/clock"
        library = folder + "/stepped_clock.so"
        let source = URL(fileURLWithPath: #filePath).appendingPathComponent(
            "../../../../scripts/lib/stepped_clock.c"
        )
        // The toolchain of Swift has it.
        try await SystemTool.run(
            "clang",
            "-O2",
            "-shared",
            "-fPIC",
            "-o",
            library,
            source.standardized.path
        )
        guard FileManager.default.createFile(atPath: file, contents: nil) else {
            throw CommandFailure("\(file) cannot be made")
        }
        try set(.zero)
    }

    /// From now on the program's wall clock differs from the machine's by this much.
    package func set(_ offset: Duration) throws {
        let nanoseconds = Int64(offset / .nanoseconds(1))
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
        // In place: the program has it in its memory.
        try handle.write(contentsOf: withUnsafeBytes(of: nanoseconds) { Data($0) })
        try handle.close()
    }

    /// What the program is started with.
    package var environment: [String: String] {
        ["LD_PRELOAD": library, "STEPPED_CLOCK": file]
    }
}
