import COperonProcess
import Glibc

/// The file system of the control groups. The defaults are the kernel's; a test may put a folder in
/// its place.
struct ControlGroupFiles: Sendable {
    /// The folder in which `proc` and `sys` are.
    var root = ""
    /// What the kernel must be able to limit.
    var controllers = ["cpu", "memory"]
    /// Whether a folder is a control group of version 2.
    var isControlGroup: @Sendable (String) -> Bool = {
        unsafe operon_process_is_control_group($0) == 1
    }
    /// Makes a group. The kernel fills its folder with files. One that is there is left as it is.
    var make: @Sendable (_ group: String) throws(SystemError) -> Void = {
        path throws(SystemError) in
        guard unsafe mkdir(path, 0o755) == 0 || errno == EEXIST else {
            throw .current("making the control group \(path)")
        }
    }
    /// Replaces what a file says.
    var write: @Sendable (_ text: String, _ path: String) throws(SystemError) -> Void = {
        text,
        path throws(SystemError) in
        let file = try Self.open(path)
        let bytes = Array(text.utf8)
        let number = file.number
        let written = unsafe bytes.withUnsafeBytes { bytes in
            unsafe Glibc.write(number, bytes.baseAddress, bytes.count)
        }
        guard written == bytes.count else { throw .current("writing “\(text)” to \(path)") }
    }

    /// Opens a file for writing.
    static func open(_ path: String) throws(SystemError) -> Descriptor {
        let number = unsafe Glibc.open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW)
        guard number >= 0 else { throw .current("opening \(path)") }
        return Descriptor(owning: number)
    }

    // MARK: - Reading

    /// What a file says; empty if it cannot be read.
    static func text(_ path: String) -> String {
        SmallFile.read(path).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// What an open file says now, at most its first 4 KiB.
    static func text(of file: borrowing Descriptor) throws(SystemError) -> String {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let number = file.number
        let count = unsafe bytes.withUnsafeMutableBytes { buffer in
            unsafe pread(number, buffer.baseAddress, buffer.count, 0)
        }
        guard count >= 0 else { throw .current("reading a control group") }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    /// The numbers of the processes in a group.
    static func processes(in group: String) throws(SystemError) -> [Substring] {
        let path = "\(group)/cgroup.procs"
        guard let bytes = SmallFile.read(path) else { throw .current("reading \(path)") }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    }

    static func words(_ path: String) -> [Substring] {
        text(path).split { $0 == " " || $0 == "\n" }
    }

    /// In a file with lines of a name and a number; 0: there is no such line.
    static func number(after name: String, in path: String) -> Int {
        let words = words(path)
        guard let place = words.firstIndex(of: name[...]), place + 1 < words.count else { return 0 }
        return Int(words[place + 1]) ?? 0
    }

    /// The names of the folders in a folder, sorted.
    static func folders(in folder: String) -> [String] {
        guard let opened = unsafe opendir(folder) else { return [] }
        defer { unsafe closedir(opened) }
        var names: [String] = []
        while let entry = unsafe readdir(opened) {
            guard unsafe entry.pointee.d_type == UInt8(DT_DIR) else { continue }
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { start in
                unsafe start.withMemoryRebound(to: CChar.self, capacity: 256) {
                    unsafe String(cString: $0)
                }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}
