import Logging
import NIOCore
import NIOPosix
import OperonAMQP
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTrust
import OperonWire

/// Finds out which workers listen on a prefix that no coordinator holds. It briefly takes the place
/// of the coordinator, listens without sending anything, and leaves. Workers without a coordinator
/// send a message every beat.
struct WorkerSurvey {
    struct Worker: Hashable {
        var name: String
        var host: String?
        /// `nil`: the worker serves a coordinator that is away, and has not announced its slots.
        var slots: Int?

        /// For example “a1 on host1 (4)”.
        var words: String {
            "\(name)" + (host.map { " on \($0)" } ?? "") + (slots.map { " (\($0))" } ?? "")
        }
    }

    /// Two beats, and the time that a worker takes to find the exchanges that were just declared.
    static let patience = Duration.seconds(5)
    /// How long the broker may take to release the lock that the previous check held.
    private static let connectPatience = Duration.seconds(10)

    let configuration: AMQPConfiguration

    /// The workers by name; `nil`: the prefix could not be locked.
    func run(on group: MultiThreadedEventLoopGroup, seed: UInt64) async -> [Worker]? {
        let transport = AMQPCoordinatorTransport(
            configuration: configuration,
            // Epochs count from 1, so names with this epoch belong to no coordinator.
            epoch: Epoch(rawValue: 0),
            seed: seed,
            logger: Logger(label: "operon") { _ in SwiftLogNoOpLogHandler() },
            group: group
        )
        let up = Latch()
        return await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                // Ends when the events end.
                try? await transport.run()
            }
            tasks.addTask {
                await up.wait(within: Self.connectPatience)
                // The survey listens for a fixed time: no message says that all workers have been
                // heard.
                if up.isOpen { do { try await Task.sleep(for: Self.patience) } catch {} }
                await transport.close()
            }
            var workers: [Incarnation: Worker] = [:]
            for await batch in transport.events {
                for event in batch {
                    switch event {
                    case .up: up.open()
                    case .message(let bytes): Self.note(bytes, in: &workers)
                    case .envelope, .down, .returned, .blocked: continue
                    }
                }
            }
            tasks.cancelAll()
            guard up.isOpen else { return nil }
            return workers.values.sorted { ($0.name, $0.host ?? "") < ($1.name, $1.host ?? "") }
        }
    }

    private static func note(_ bytes: [UInt8], in workers: inout [Incarnation: Worker]) {
        // A worker that seals its messages tells only its coordinator who it is.
        if let address = SealedMessage.sender(of: bytes) {
            workers[address.incarnation] = Worker(name: "\(address.incarnation) (sealed)")
            return
        }
        // Reporting unreadable messages is the task of the coordinator.
        guard let envelope = try? Wire.decodeWorker(bytes) else { return }
        let sender = envelope.sender
        guard sender.incarnation.rawValue != 0 else { return }
        if case .hello(let hello) = envelope.body {
            workers[sender.incarnation] = Worker(
                name: sender.name,
                host: hello.host,
                slots: Int(hello.slots)
            )
        } else if workers[sender.incarnation] == nil {
            workers[sender.incarnation] = Worker(name: sender.name)
        }
    }
}
