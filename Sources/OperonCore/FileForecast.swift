package import OperonModel

/// Which operations of a graph would start no process because their files are up to date, as far as
/// the files tell before anything has run.
///
/// A file that an operation would produce counts as newer than every other file.
package struct FileForecast {
    /// By their place in the graph.
    package let upToDate: Set<UInt32>

    /// - Parameters:
    ///   - order: All operations, each after those it depends on.
    ///   - look: Looks at paths, the relative ones in a directory (`nil`: that of the process).
    package init(
        of graph: GraphDescription,
        order: [UInt32],
        look: (_ paths: [String], _ directory: String?) -> [ObservedFile]
    ) {
        var upToDate: Set<UInt32> = []
        var made: Set<String> = []
        for index in order {
            guard case .command(let command) = graph.operations[Int(index)].work else { continue }
            let consumesMade = command.consumes.contains {
                made.contains(Self.whole($0, command.directory))
            }
            if command.skipsIfUpToDate, !consumesMade {
                let decision = StartDecision(
                    produced: look(command.produces, command.directory),
                    consumed: look(command.consumes, command.directory),
                    skipsIfUpToDate: true,
                    isRepeat: false
                )
                if decision == .upToDate {
                    upToDate.insert(index)
                    continue
                }
            }
            made.formUnion(command.produces.lazy.map { Self.whole($0, command.directory) })
        }
        self.upToDate = upToDate
    }

    private static func whole(_ path: String, _ directory: String?) -> String {
        guard let directory, path.utf8.first != UInt8(ascii: "/") else { return path }
        return "\(directory)/\(path)"
    }
}
