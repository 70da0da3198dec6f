/// Guesses what a person meant by an unknown word.
package enum Suggestion {
    /// Words that other tools use for what has another name here.
    private static let synonyms: [String: String] = [
        "depends": "dependencies", "depends_on": "dependencies", "dependsOn": "dependencies",
        "deps": "dependencies", "needs": "dependencies", "after": "dependencies",
        "parents": "dependencies", "requires": "dependencies",
        "cmd": "command", "args": "command", "argv": "command", "exec": "command",
        "script": "run", "shell": "run", "sh": "run",
        "env": "environment", "cwd": "directory", "workdir": "directory", "dir": "directory",
        "working_directory": "directory", "workingDirectory": "directory",
        "retries": "retry", "attempts": "limit", "maxAttempts": "limit", "backoff": "factor",
        "kind": "operation", "type": "operation", "sleep": "wait",
        "nice": "qualityOfService", "qos": "qualityOfService", "mutex": "exclusive",
        "jobs": "operations", "tasks": "operations", "steps": "operations",
        "concurrency": "maxConcurrentOperationCount", "max": "maxConcurrentOperationCount",
        "suspended": "isSuspended", "title": "name",
        "loop": "forEach", "with_items": "forEach", "items": "forEach", "each": "forEach",
        "outputs": "produces", "output": "produces", "targets": "produces", "target": "produces",
        "creates": "produces", "sources": "consumes", "prerequisites": "consumes",
        "strategy": "matrix", "id": "name", "on": "dependencies",
    ]

    /// The most similar known word, if one is similar enough.
    package static func nearest(to word: String, among known: some Sequence<String>) -> String? {
        let written = Array(word.lowercased().unicodeScalars.prefix(64))
        let bound = max(1, min(3, written.count / 3))
        var best: (word: String, distance: Int)?
        let meant = synonyms[word]
        for candidate in known {
            if candidate == meant { return candidate }
            let other = Array(candidate.lowercased().unicodeScalars.prefix(64))
            guard abs(other.count - written.count) <= bound else { continue }
            let distance = distance(written, other)
            if distance <= bound, distance < best?.distance ?? .max {
                best = (candidate, distance)
            }
        }
        return best?.word
    }

    /// The edit distance: insertions, deletions, replacements and swaps of neighbours.
    private static func distance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
        var beforeLast = [Int](repeating: 0, count: right.count + 1)
        var last = Array(0...right.count)
        for (i, scalar) in left.enumerated() {
            var row = [i + 1]
            for (j, other) in right.enumerated() {
                var least = min(last[j + 1] + 1, row[j] + 1, last[j] + (scalar == other ? 0 : 1))
                if i > 0, j > 0, scalar == right[j - 1], left[i - 1] == other {
                    least = min(least, beforeLast[j - 1] + 1)
                }
                row.append(least)
            }
            (beforeLast, last) = (last, row)
        }
        return last[right.count]
    }

    /// `; did you mean “x”?`, or nothing.
    package static func hint(for word: String, among known: some Sequence<String>) -> String {
        nearest(to: word, among: known).map { "; did you mean \($0.quoted)?" } ?? ""
    }
}
