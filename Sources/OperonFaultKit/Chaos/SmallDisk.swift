import Foundation
import Glibc

/// A file system of limited size in a folder, which a test can fill. It needs the right to mount
/// one: scripts/chaos runs its tests where they may.
package final class SmallDisk {
    package let path: String
    private var filler: String { path + "/filler" }

    /// Mounts one while `body` runs.
    package static func withDisk<Result>(
        at path: String,
        mebibytes: Int,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (SmallDisk) async throws -> Result
    ) async throws -> Result {
        let disk = SmallDisk(path: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try await SystemTool.run("mount", "-t", "tmpfs", "-o", "size=\(mebibytes)m", "tmpfs", path)
        do {
            let result = try await body(disk)
            try await disk.unmount()
            return result
        } catch {
            try await disk.unmount()
            throw error
        }
    }

    private init(path: String) { self.path = path }

    /// Lazily: a program that is being killed may still have a file open there.
    private func unmount() async throws { try await SystemTool.run("umount", "--lazy", path) }

    /// Takes all the room there is.
    package func fill() throws {
        let file = open(filler, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw CommandFailure("no filler on \(path): error \(errno)") }
        defer { close(file) }
        // First whole pages, and then what is left of the last one.
        for size in [1 << 20, 4_096, 1] {
            let bytes = [UInt8](repeating: 0, count: size)
            while write(file, bytes, size) > 0 {}
        }
        guard errno == ENOSPC else { throw CommandFailure("\(path) is not full: error \(errno)") }
    }

    /// Gives the room back.
    package func clear() throws { try FileManager.default.removeItem(atPath: filler) }
}
