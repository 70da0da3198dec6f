extension Rules {
    /// The files that look up a graph or an operation by its number. Numbers come from workers,
    /// clients and stores: whoever reads a message asks `exists` or `check` first, and what follows
    /// asks one of these.
    static let tables: Set = [
        "Sources/OperonCore/GraphTable.swift",
        "Sources/OperonRuntime/Coordinator/GraphCatalog.swift",
        "Sources/OperonRuntime/Coordinator/GraphContents.swift",
        "Sources/OperonRuntime/Coordinator/RunRecorder.swift",
    ]

    /// Numbers of graphs and operations that are made an index anywhere else. A comparison with a
    /// count is none.
    static func numbersAsIndices(_ file: SourceFile) -> [Violation] {
        if tables.contains(file.path) { return [] }
        return file.code.lines.enumerated().flatMap { index, line -> [Violation] in
            guard line.contains(".index)") || line.contains(".rawValue)"),
                ![" < ", " > ", " <= ", " >= "].contains(where: line.contains)
            else { return [] }
            return line.matches(of: /Int\((?:[\w$]+\.)*([\w$]+)\.(?:index|rawValue)\)/)
                // Of an outcome, which has few.
                .filter { $0.1 != "kind" }
                .map { Violation(file.path, index + 1, "\($0.0) is an index outside of a table") }
        }
    }
}
