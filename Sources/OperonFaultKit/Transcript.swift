import Foundation
import Glibc

/// What a program has said so far on one stream.
package final class Transcript: @unchecked Sendable {
    // Everything below is touched under this lock alone.
    private let lock = NSLock()
    private var bytes: [UInt8] = []
    private var waiters: [Waiter] = []
    private let ended = Latch<Bool>()

    private struct Waiter {
        let wanted: String
        let times: Int
        let latch = Latch<Bool>()

        func isSatisfied(by text: String) -> Bool {
            times == 1 ? text.contains(wanted) : text.count(of: wanted) >= times
        }
    }

    package var text: String { lock.withLock { String(decoding: bytes, as: UTF8.self) } }

    /// Reads until there is no more, and closes. Blocks: for a thread of its own.
    package func readAll(_ reader: Int32) {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(reader, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            // A terminal without anybody on its other side gives EIO.
            guard count > 0 else { break }
            append(buffer[..<count])
        }
        close(reader)
        end()
    }

    package func end() {
        ended.open(true)
        for waiter in lock.withLock({ waiters }) { waiter.latch.open(false) }
    }

    private func append(_ piece: ArraySlice<UInt8>) {
        let found = lock.withLock {
            bytes += piece
            guard !waiters.isEmpty else { return [Latch<Bool>]() }
            let text = String(decoding: bytes, as: UTF8.self)
            let found = waiters.filter { $0.isSatisfied(by: text) }.map(\.latch)
            waiters.removeAll { $0.isSatisfied(by: text) }
            return found
        }
        for latch in found { latch.open(true) }
    }

    /// Whether it has said this so often before its end and the deadline.
    package func wait(
        for wanted: String,
        times: Int = 1,
        until deadline: ContinuousClock.Instant
    ) async -> Bool {
        let waiter = Waiter(wanted: wanted, times: times)
        lock.withLock {
            if waiter.isSatisfied(by: String(decoding: bytes, as: UTF8.self)) {
                waiter.latch.open(true)
            } else {
                waiters.append(waiter)
            }
        }
        if ended.value != nil { waiter.latch.open(waiter.isSatisfied(by: text)) }
        return await waiter.latch.wait(until: deadline) ?? false
    }

    package func waitForEnd(until deadline: ContinuousClock.Instant) async -> Bool {
        await ended.wait(until: deadline) ?? false
    }
}

/// A value that comes once, and those who wait for it.
final class Latch<Value: Sendable>: @unchecked Sendable {
    // Everything below is touched under this lock alone.
    private let lock = NSLock()
    private var opened: Value?
    private var waiters: [Int: CheckedContinuation<Value?, Never>] = [:]
    private var lastWaiter = 0

    var value: Value? { lock.withLock { opened } }

    /// The first value stays.
    func open(_ value: Value) {
        let waiting = lock.withLock { () -> [CheckedContinuation<Value?, Never>] in
            guard opened == nil else { return [] }
            opened = value
            defer { waiters = [:] }
            return Array(waiters.values)
        }
        for waiter in waiting { waiter.resume(returning: value) }
    }

    /// `nil`: not by the deadline, or the task was cancelled.
    func wait(until deadline: ContinuousClock.Instant) async -> Value? {
        await withTaskGroup(of: Value?.self) { group in
            group.addTask { await self.wait() }
            group.addTask {
                // benign: a cancelled sleep is a deadline that nobody waits for any more.
                try? await Task.sleep(until: deadline, clock: .continuous)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    private func wait() async -> Value? {
        let number = lock.withLock {
            lastWaiter += 1
            return lastWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now: Value?? = lock.withLock {
                    if let opened { return .some(opened) }
                    if Task.isCancelled { return .some(nil) }
                    waiters[number] = continuation
                    return nil
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            let waiter = lock.withLock { waiters.removeValue(forKey: number) }
            waiter?.resume(returning: nil)
        }
    }
}

extension String {
    /// How often it stands there, without overlaps.
    package func count(of wanted: String) -> Int {
        components(separatedBy: wanted).count - 1
    }
}
