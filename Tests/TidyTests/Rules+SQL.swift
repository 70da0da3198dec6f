extension Rules {
    /// What may be put into the text of a statement: names of the source (in `StoreTables` each is
    /// a `StaticString`), whole statements that are constants, and two numbers.
    static let namesInSQL: Set = [
        "table", "key", "Self.selectAttempts", "Self.selectOperations",
        "StoreTables.selectOperations", "StoreSchema.applicationID", "StoreSchema.version", "pages",
    ]

    private static let wordsOfSQL = [
        "ALTER", "ATTACH", "CREATE", "DELETE", "DROP", "FROM", "INSERT", "ORDER BY", "PRAGMA",
        "SELECT", "SET", "UPDATE", "VACUUM", "VALUES", "WHERE",
    ]

    /// Statements of SQL with a value in their text, which belongs into a bound parameter.
    static func composedSQL(_ file: SourceFile) -> [Violation] {
        file.code.literals.filter { literal in
            wordsOfSQL.contains { contains(literal.text, word: $0) }
        }.flatMap { literal in
            (literal.interpolations + literal.joined).filter { !namesInSQL.contains($0) }.map {
                Violation(file.path, literal.line, "bind \($0) instead of writing it into SQL")
            }
        }
    }
}
