import OperonModel

// Sources outside of the cluster.
extension TriggerReader {
    mutating func watched(
        _ entry: Node.Entry,
        _ others: [Node.Entry]
    ) throws(Stop) -> FiringSource? {
        let source: WatchedSource? =
            switch entry.key {
            case "file": try file(entry, others)
            case "pipe": try pipe(entry, others)
            case "signal": try signal(entry, others)
            case "process": try process(entry, others)
            default: try message(entry, others)
            }
        guard let source, try isSmall(source, entry) else { return nil }
        return .watched(source)
    }

    /// The workers that watch a source.
    ///
    /// - Returns: Whether they can.
    mutating func readWatcher(_ entry: Node.Entry, of source: Node.Entry) throws(Stop) -> Bool {
        let kinds = WatchedSource.kinds.filter { $0 != "message" }
        guard kinds.contains(source.key) else {
            let names = kinds.joined(separator: ", ")
            try fields.log.report(
                .misplacedKey,
                at: entry.keyPosition,
                entry.key,
                "workers watch \(names); the coordinator looks after \(source.key.quoted)"
            )
            return false
        }
        guard let requirements = try fields.requirements(entry.value, entry.key)
        else { return false }
        watcher = .workers(requirements)
        return true
    }

    /// Whether a worker can be told of the source.
    private mutating func isSmall(
        _ source: WatchedSource,
        _ entry: Node.Entry
    ) throws(Stop) -> Bool {
        guard watcher != .coordinator, case .program(let arguments) = source else { return true }
        let bytes = arguments.reduce(0) { $0 + $1.utf8.count + 1 }
        guard bytes > Limits.watchedProgramBytes else { return true }
        try fields.log.report(
            .limitExceeded,
            at: entry.keyPosition,
            entry.key,
            "the command has \(bytes) bytes; one that a worker runs may have "
                + "\(Limits.watchedProgramBytes)"
        )
        return false
    }

    private mutating func file(
        _ entry: Node.Entry,
        _ others: [Node.Entry]
    ) throws(Stop) -> WatchedSource? {
        guard
            let found = try settings(of: entry, others, main: "path", ["path", "pattern", "on"]),
            let node = found["path"]?.value, let path = try path(node, "path")
        else { return nil }
        var source = FileSource(path: path)
        if let pattern = found["pattern"] {
            guard let text = try fields.text(pattern.value, "pattern"),
                try isName(text, of: pattern.value, "the pattern")
            else { return nil }
            source.pattern = text
        } else {
            let name = path.split(separator: "/").last.map(String.init) ?? ""
            guard try isName(name, of: node, "the name") else { return nil }
        }
        if let on = found["on"] {
            let nodes = on.value.elements ?? [on.value]
            source.changes = []
            for node in nodes {
                guard
                    let change = try fields.word(
                        node,
                        "on",
                        FileSource.Change.allCases,
                        \.rawValue
                    )
                else { return nil }
                source.changes.insert(change)
            }
            guard !source.changes.isEmpty else {
                try empty(on.value, "on", "names no change of a file")
                return nil
            }
        }
        return .file(source)
    }

    private mutating func isName(
        _ name: String,
        of node: Node,
        _ what: String
    ) throws(Stop) -> Bool {
        guard let problem = FileSource.problem(ofName: name) else { return true }
        try fields.log.report(
            .invalidValue,
            at: node.position,
            name,
            "\(what) \(name.quoted) \(problem)"
        )
        return false
    }

    private mutating func pipe(
        _ entry: Node.Entry,
        _ others: [Node.Entry]
    ) throws(Stop) -> WatchedSource? {
        var main = "path"
        if let entries = entry.value.entries {
            let mains = entries.filter { ["path", "run", "command"].contains($0.key) }
            guard mains.count == 1 else {
                try fields.log.report(
                    mains.isEmpty ? .missingKey : .misplacedKey,
                    at: mains.dropFirst().first?.keyPosition ?? entry.keyPosition,
                    "pipe",
                    "“pipe” needs exactly one of path, run and command"
                )
                return nil
            }
            main = mains[0].key
        }
        guard let found = try settings(of: entry, others, main: main, [main]),
            let node = found[main]?.value
        else { return nil }
        switch main {
        case "path": return try path(node, "path").map { .pipe($0) }
        case "run":
            guard let text = try fields.text(node, "run") else { return nil }
            guard !text.isEmpty else {
                try fields.mismatch(node, "run", "a command")
                return nil
            }
            return .program(CommandDescription.shell(text))
        default:
            guard let elements = node.elements else {
                try fields.mismatch(node, "command", "a list: a program and its arguments")
                return nil
            }
            var arguments: [String] = []
            for element in elements {
                guard let text = try fields.text(element, "command") else { return nil }
                arguments.append(text)
            }
            guard arguments.first?.isEmpty == false else {
                try empty(node, "command", "names no program")
                return nil
            }
            return .program(arguments)
        }
    }

    private mutating func empty(_ node: Node, _ key: String, _ what: String) throws(Stop) {
        try fields.log.report(.invalidValue, at: node.position, key, "\(key.quoted) \(what)")
    }

    private mutating func signal(
        _ entry: Node.Entry,
        _ others: [Node.Entry]
    ) throws(Stop) -> WatchedSource? {
        guard let found = try settings(of: entry, others, main: "name", ["name"]),
            let node = found["name"]?.value,
            let name = try fields.word(node, "signal", WatchedSource.signals, \.self)
        else { return nil }
        return .signal(name)
    }

    private mutating func process(
        _ entry: Node.Entry,
        _ others: [Node.Entry]
    ) throws(Stop) -> WatchedSource? {
        let mains = ["pid", "pidFile", "identity"]
        var main = "pid"
        if let entries = entry.value.entries {
            let given = entries.filter { mains.contains($0.key) }
            guard given.count == 1 else {
                try fields.log.report(
                    given.isEmpty ? .missingKey : .misplacedKey,
                    at: given.dropFirst().first?.keyPosition ?? entry.keyPosition,
                    "process",
                    "“process” needs exactly one of pid and pidFile"
                )
                return nil
            }
            main = given[0].key
        }
        guard let found = try settings(of: entry, others, main: main, [main]),
            let node = found[main]?.value
        else { return nil }
        switch main {
        case "pid":
            let number = try fields.count(node, "pid", from: 1, through: Int(Int32.max))
            return number.map { .process(.number(Int32($0))) }
        case "pidFile": return try path(node, "pidFile").map { .process(.file($0)) }
        default:
            guard let text = try fields.text(node, "identity") else { return nil }
            guard 1...Limits.processIdentityBytes ~= text.utf8.count else {
                let most = Limits.processIdentityBytes
                try fields.mismatch(node, "identity", "1 to \(most) bytes")
                return nil
            }
            return .process(.identity(text))
        }
    }

    private mutating func message(
        _ entry: Node.Entry,
        _ others: [Node.Entry]
    ) throws(Stop) -> WatchedSource? {
        guard let found = try settings(of: entry, others, main: "queue", ["queue"]),
            let node = found["queue"]?.value, let queue = try fields.name(node, "queue")
        else { return nil }
        guard queue.utf8.count <= Limits.queueNameBytes else {
            try fields.mismatch(
                node,
                "queue",
                "the name of a queue, which has at most \(Limits.queueNameBytes) bytes"
            )
            return nil
        }
        return .message(queue)
    }

    private mutating func path(_ node: Node, _ key: String) throws(Stop) -> String? {
        guard let path = try fields.text(node, key) else { return nil }
        guard let problem = Limits.problem(ofWatchedPath: path) else { return path }
        try fields.log.report(
            .invalidValue,
            at: node.position,
            path,
            "\(key.quoted) \(path.quoted) \(problem)"
        )
        return nil
    }
}
