import Glibc
package import OperonModel
package import OperonWire
import Synchronization

/// The client side of the operation socket: sends requests to the worker that runs this process.
package struct OperationSocketClient: Sendable {
    package static let socketVariable = "OPERON_SOCKET"
    package static let tokenVariable = "OPERON_TOKEN"

    private let path: String
    private let token: String

    /// Returns `nil` if this process does not belong to a running operation.
    package init?(environment: [String: String]) {
        guard let path = environment[Self.socketVariable],
            let token = environment[Self.tokenVariable]
        else { return nil }
        self.path = path
        self.token = token
    }

    /// Encodes operations for a request.
    package static func body(of graph: GraphDescription) throws(OperationSocketError) -> [UInt8] {
        do throws(WireError) {
            return try StoreFormat.encode(graph, failFast: false)
        } catch {
            throw OperationSocketError(message: error.message)
        }
    }

    /// Sends a request and waits for the answer, however long that takes: blocks.
    ///
    /// - Throws: `OperationSocketError` if the worker is absent, or ends before it has answered, or
    ///   the call was cancelled.
    package func ask(
        _ what: OperationSocketFormat.Request.What,
        by call: OperationSocketCall = OperationSocketCall()
    ) throws(OperationSocketError) -> OperationSocketFormat.Answer {
        let request = OperationSocketFormat.Request(token: token, what: what)
        let question: [UInt8]
        do throws(WireError) {
            question = try OperationSocketFormat.encode(request)
        } catch {
            throw OperationSocketError(message: error.message)
        }
        let answer = try exchange(question, by: call)
        do throws(WireError) {
            return try OperationSocketFormat.decodeAnswer(answer)
        } catch {
            let why = "The worker's answer cannot be read: \(error.message)."
            throw OperationSocketError(message: why)
        }
    }

    private func exchange(
        _ request: [UInt8],
        by call: OperationSocketCall
    ) throws(OperationSocketError) -> [UInt8] {
        let socket: Descriptor
        do throws(SystemError) {
            socket = try LocalSocket.connected(to: path)
        } catch {
            throw OperationSocketError(
                message: "The worker of this operation cannot be reached: \(error)."
            )
        }
        call.began(on: socket.number)
        defer { call.ended() }
        var sent = 0
        while sent < request.count {
            let number = socket.number
            let count = unsafe request.withUnsafeBytes { bytes in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[sent...])
                return unsafe Glibc.send(
                    number,
                    rest.baseAddress,
                    rest.count,
                    Int32(MSG_NOSIGNAL)
                )
            }
            if count < 0, errno == EINTR { continue }
            // The worker may have answered before it has read everything.
            guard count > 0 else { break }
            sent += count
        }
        return try answer(from: socket)
    }

    private func answer(from socket: borrowing Descriptor) throws(OperationSocketError) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            if let length = OperationSocketFormat.length(bytes[...]),
                bytes.count >= length + OperationSocketFormat.lengthBytes
            {
                return Array(
                    bytes[
                        OperationSocketFormat.lengthBytes..<OperationSocketFormat.lengthBytes
                            + length
                    ]
                )
            }
            let number = socket.number
            let count = unsafe buffer.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(number, buffer.baseAddress, buffer.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                throw OperationSocketError(message: "The worker of this operation went away.")
            }
            bytes += buffer[..<count]
        }
    }
}

/// One request that may be cancelled while another thread waits for its answer.
package final class OperationSocketCall: Sendable {
    private struct State {
        var socket: Int32?
        var isCancelled = false
    }

    private let state = Mutex(State())

    package init() {}

    fileprivate func began(on socket: Int32) {
        state.withLock { state in
            state.socket = socket
            if state.isCancelled { _ = shutdown(socket, Int32(SHUT_RDWR)) }
        }
    }

    /// To be called before the socket is closed, because its number may be reused after that.
    fileprivate func ended() { state.withLock { $0.socket = nil } }

    /// Ends the call, now or as soon as it begins: the worker sees that nobody waits.
    package func cancel() {
        state.withLock { state in
            state.isCancelled = true
            if let socket = state.socket { _ = shutdown(socket, Int32(SHUT_RDWR)) }
        }
    }
}

/// Why a running operation got no answer: a sentence for people.
package struct OperationSocketError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    package var description: String { message }
}
