import COperonProcess
import Glibc
import OperonModel
import OperonPorts

/// What tells one file, and one state of it, from others.
struct FileFacts: Hashable {
    let inode: UInt64
    let links: UInt64
    let bytes: UInt64
    let isRegular: Bool
    /// When its content changed last.
    let written: Time
    /// When its content, its name, its owner or its rights changed last.
    let changed: Time
    /// When it was made; `nil`: the file system does not know.
    let born: Time?

    struct Time: Hashable, Comparable, CustomStringConvertible {
        let seconds: Int64
        let nanoseconds: UInt32

        init(_ time: operon_process_time) {
            seconds = time.seconds
            nanoseconds = time.nanoseconds
        }

        static func < (left: Time, right: Time) -> Bool {
            (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
        }

        var description: String { "\(seconds).\(nanoseconds)" }
    }

    /// Throws the `errno` of a file that cannot be looked at. Links are not followed.
    init(_ path: [UInt8]) throws(SystemError) {
        var file = operon_process_file()
        let result = unsafe (path.map(CChar.init(bitPattern:)) + [0]).withUnsafeBufferPointer {
            unsafe operon_process_look($0.baseAddress!, &file)
        }
        guard result == 0 else { throw .current("looking at a file") }
        inode = file.inode
        links = file.links
        bytes = file.bytes
        isRegular = file.is_regular != 0
        written = Time(file.written)
        changed = Time(file.changed)
        born = file.has_birth != 0 ? Time(file.born) : nil
    }

    /// Whether these are facts of the same file.
    func isSame(as other: FileFacts) -> Bool { inode == other.inode && born == other.born }
}
