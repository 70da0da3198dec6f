extension Rules {
    /// Words that made readers stumble, which documents use no more: a withheld subject, and names
    /// of our own for what has a standard term.
    static let retiredWords = [
        "whoever", "nobody's", "somebody else's", "further round", "next life", "last life",
        "earlier life", "tombstone", "happening",
    ]

    /// Retired words in the prose of a document. Code and quoted names, as of tests, are none.
    static func retiredWords(_ file: SourceFile) -> [Violation] {
        var isCode = false
        var violations: [Violation] = []
        for (index, line) in file.lines.enumerated() {
            if line.drop(while: { $0 == " " }).hasPrefix("```") { isCode.toggle() }
            if isCode || !retiredWords.contains(where: line.lowercased().contains) { continue }
            let prose = line.replacing(/`[^`]*`|"[^"]*"|“[^”]*”/, with: "").lowercased()
            violations += retiredWords.filter { prose.contains($0) }.map {
                Violation(file.path, index + 1, "retired: \($0)")
            }
        }
        return violations
    }
}
