import Logging
import NIOCore
import NIOPosix
import OperonAMQP
import OperonModel
import OperonPorts
import OperonRuntime
import OperonWire

/// Hears for a moment which workers are there, on a prefix that nobody holds: it takes the
/// coordinator's place, listens, says nothing, and leaves. Workers without a coordinator speak up
/// every beat.
struct WorkerSurvey {
    struct Worker: Hashable {
        var name: String
        var host: String?
        /// `nil`: it serves a coordinator that is away, and says no more than that it is there.
        var slots: Int?

        /// “a1 on host1 (4)”.
        var words: String {
            "\(name)" + (host.map { " on \($0)" } ?? "") + (slots.map { " (\($0))" } ?? "")
        }
    }

    /// Two beats, and what a worker takes to find the exchanges that have just been declared.
    static let patience = Duration.seconds(5)
    /// For the broker to let go of the lock that was just tried.
    private static let connectPatience = Duration.seconds(10)

    let configuration: AMQPConfiguration

    /// By name; `nil`: the prefix could not be had.
    func run(on group: MultiThreadedEventLoopGroup, seed: UInt64) async -> [Worker]? {
        let transport = AMQPCoordinatorTransport(
            configuration: configuration,
            // Epochs count from 1: what is named after this one is nobody's.
            epoch: Epoch(rawValue: 0),
            seed: seed,
            logger: Logger(label: "operon") { _ in SwiftLogNoOpLogHandler() },
            group: group
        )
        let up = Latch()
        return await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                // Ends with the events.
                try? await transport.run()
            }
            tasks.addTask {
                await up.wait(within: Self.connectPatience)
                // How long is listened is what is asked for: nothing says that all have spoken.
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
        // What cannot be read is somebody else's to complain about.
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
