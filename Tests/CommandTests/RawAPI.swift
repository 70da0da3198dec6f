import Foundation
import Glibc

/// A request to a coordinator without any client of ours, by the system's own calls.
enum RawAPI {
    struct Answer {
        let status: Int
        let body: String
    }

    struct Failure: Error { let number = errno }

    /// - Parameter address: `unix:PATH` or `127.0.0.1:PORT`.
    static func ask(
        _ address: String,
        _ path: String,
        _ method: String = "GET",
        token: String? = nil
    ) throws -> Answer {
        let number = try connection(to: address)
        defer { close(number) }
        var head = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        if method != "GET" { head += "Content-Type: application/json\r\n" }
        if let token { head += "Authorization: Bearer \(token)\r\n" }
        let request = Array((head + "\r\n").utf8)
        guard write(number, request, request.count) == request.count else { throw Failure() }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(number, &piece, piece.count)
            if count <= 0 { break }
            bytes += piece[..<count]
        }
        let text = String(decoding: bytes, as: UTF8.self)
        let status = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        let end = text.range(of: "\r\n\r\n")?.upperBound ?? text.endIndex
        return Answer(status: status, body: String(text[end...]))
    }

    private static func connection(to address: String) throws -> Int32 {
        if address.hasPrefix("unix:") {
            let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            var name = sockaddr_un()
            name.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &name.sun_path) {
                $0.copyBytes(from: address.dropFirst("unix:".count).utf8)
            }
            return try connected(number, &name)
        }
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = (address.split(separator: ":").last.flatMap { UInt16($0) } ?? 0).bigEndian
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return try connected(number, &name)
    }

    private static func connected<Name>(_ number: Int32, _ name: inout Name) throws -> Int32 {
        let status = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<Name>.size))
            }
        }
        guard status == 0 else { throw Failure() }
        return number
    }
}
