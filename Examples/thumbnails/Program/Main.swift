import ArgumentParser
import Operon

@main struct Thumbnails: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Makes thumbnails of pictures, and a sheet of them.",
        subcommands: [Make.self, Work.self],
        defaultSubcommand: Make.self
    )
}

/// Adds the operations, and waits for the sheet.
struct Make: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make them: in this process, or on the workers of a coordinator."
    )

    @Option(help: "A coordinator's URL. Default: none, everything runs in this process.")
    var coordinator: String?

    @Option(help: "Where the files are: the same for all workers.")
    var folder = "thumbnails"

    @Option(help: "How many pictures.")
    var pictures = 5

    func run() async throws {
        let cluster = coordinator.map { Cluster.remote($0) } ?? .inProcess
        let queue = OperationQueue(name: "thumbnails", cluster: cluster)
        let widths = [16, 32, 64]

        var handles: [AnyOperationHandle] = []
        var rows: [[String]] = []
        var groups: [GroupHandle] = []
        for number in 1...max(1, pictures) {
            // The last one is too small for the largest thumbnail.
            let width = number == pictures ? 48 : 160
            let paint = OperationHandle(Paint(folder: folder, number: number, width: width))
            let scales = widths.map {
                Scale(file: "\(folder)/picture\(number).ppm", width: $0)
            }
            let group = GroupHandle("sizes of picture \(number)") { for scale in scales { scale } }
            group.after(paint)
            rows.append(scales.map(\.target))
            groups.append(group)
            handles += [paint, group]
        }

        // Whatever became of each group: the sheet shows what there is.
        let sheet = OperationHandle(Sheet(rows: rows, target: "\(folder)/sheet.ppm"))
        for group in groups { try await sheet.addDependency(group, when: .finished) }
        try await queue.addOperations(handles + [sheet])

        for group in groups {
            print("\(group.name): \(try await group.finalOutcome().kind)")
            for part in group.parts {
                if case .failed(let error) = try await part.finalOutcome() { print("  \(error)") }
            }
        }
        print("\(try await sheet.value) thumbnails on \(folder)/sheet.ppm")
        await cluster.close()
    }
}

/// The worker for them.
struct Work: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "worker",
        abstract: "Work for the coordinator at a broker."
    )

    @Option(help: "The broker's URL. Default: the variable OPERON_BROKER.")
    var broker: String?

    @Option(help: "Begins the names of all queues and exchanges.")
    var prefix = "operon."

    @Option(help: "How many operations run at once. Default: one per processor.")
    var slots: Int?

    func run() async throws {
        try await Worker(
            broker: broker,
            prefix: prefix,
            slots: slots,
            .on(MakeFolder.self),
            .on(Paint.self),
            .on(Scale.self),
            .on(Sheet.self)
        ).run()
    }
}
