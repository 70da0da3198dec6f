import OperonModel

/// Who has written a value, as far as a shell that would read it must know. A value without an
/// origin is in the graph file, is a number, or is one of those that the file allows.
enum ValueOrigin: Hashable, Sendable {
    /// Who submits the graph, and may run any command with it.
    case submitter
    /// Somebody else, whose value is known when the graph runs or is submitted.
    case outside(OutsideSource)

    /// The one of two that needs more care.
    static func stricter(_ first: ValueOrigin?, _ second: ValueOrigin?) -> ValueOrigin? {
        if case .outside = first { return first }
        return second ?? first
    }

    /// The origin of values that are read from files: `{ lines: … }` or `{ files: … }`.
    init?(ofValuesIn node: Node) {
        switch node.entries?.first?.key {
        case "lines": self = .outside(.lines)
        case "files": self = .outside(.files)
        default: return nil
        }
    }
}

/// Where a value comes from that neither the graph file has nor its submitter gives.
enum OutsideSource: Hashable, Sendable {
    /// What fired the trigger that submits the graph.
    case event
    /// A running operation, which adds operations with `operon add`.
    case addition
    /// The output of the operation of this name.
    case output(String)
    case lines
    case files

    /// What follows “which comes from”.
    var text: String {
        switch self {
        case .event: "what fired the trigger"
        case .addition: "the operation that runs “operon add”"
        case .output(let name): "the output of \(name.quoted)"
        case .lines: "“lines”"
        case .files: "“files”"
        }
    }
}

/// Which texts a shell takes for nothing but themselves, wherever they stand in its script.
enum ShellValue {
    /// Why a shell, or a program that gets the value from one, could take it for something else;
    /// `nil`: neither does.
    static func danger(in value: String) -> String? {
        guard let first = value.utf8.first else { return "is empty" }
        if first == UInt8(ascii: "-") { return "begins with “-”, as options do" }
        return value.utf8.allSatisfy(isHarmless)
            ? nil : "has characters that a shell may interpret"
    }

    /// A list of what is allowed: nobody knows all that some shell acts on.
    private static func isHarmless(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            Byte.zero...Byte.nine:
            true
        default: others.contains(byte)
        }
    }

    private static let others = Set("_-./:@%+,=".utf8)
}

/// The scripts of an operation: what a shell reads as a program.
enum ShellScript {
    private static let shells: Set = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"]

    /// The script as the file writes it, and the field that has it.
    static func all(in entries: [Node.Entry]) -> [(field: String, script: Node)] {
        var scripts: [(field: String, script: Node)] = []
        for entry in entries {
            // A parameter may give the name of the field.
            if entry.key == OperationKey.run.name || entry.key.contains("${") {
                scripts.append((OperationKey.run.name, entry.value))
            } else if entry.key == OperationKey.command.name,
                let script = script(in: entry.value.elements ?? [])
            {
                scripts.append((entry.key, script))
            }
        }
        return scripts
    }

    /// The argument that the first shell with the option `-c` reads: `[sudo, bash, -euc, SCRIPT]`.
    private static func script(in arguments: [Node]) -> Node? {
        let first = arguments.firstIndex { argument in
            argument.text.map { shells.contains(Path.baseName(of: $0)) } ?? false
        }
        guard let first else { return nil }
        var takesScript = false
        var index = first + 1
        while index < arguments.count {
            guard let text = arguments[index].text,
                text.utf8.count > 1, text.hasPrefix("-") || text.hasPrefix("+")
            else { return takesScript ? arguments[index] : nil }
            index += 1
            if text.hasPrefix("--") {
                if text == "--rcfile" || text == "--init-file" { index += 1 }
                continue
            }
            if text.hasPrefix("-"), text.contains("c") { takesScript = true }
            // The name of an option follows: `-o pipefail`.
            if text.hasSuffix("o") || text.hasSuffix("O") { index += 1 }
        }
        return nil
    }
}

/// A value that becomes a part of a script.
struct ShellUse {
    /// The parameter, or the variable of elements.
    let name: String
    /// `run` or `command`.
    let field: String
    let position: Position
    let origin: ValueOrigin
    /// Processes have no variables for lists.
    let isList: Bool
    /// Whether the variable of this name has another value, which the file sets.
    let isHidden: Bool

    /// What to write instead.
    private var remedy: String {
        if isList {
            return "pass the list as arguments,"
                + " command: [/bin/sh, -c, 'SCRIPT \"$@\"', sh, \"${\(name)}\"]"
        }
        if isHidden {
            return "the variable \(name.quoted) has another value, so add one,"
                + " environment: { VALUE: \"${\(name)}\" }, and write \"$VALUE\""
        }
        return "write \"$\(name)\", a variable that the process has"
    }

    /// Why this operation is refused with this value.
    func refusal(of value: String, _ danger: String, in operation: String) -> String {
        guard case .outside(let source) = origin else { return "" }
        return "${\(name)} in “\(field)” of operation \(operation.quoted): the value"
            + " \(value.quoted), which comes from \(source.text), \(danger); \(remedy)"
    }

    /// What a person is told about the file.
    func warning(in operation: String) -> String {
        let more =
            origin == .submitter
            ? ", or list the allowed “values” of the parameter"
            : "; values with special characters are refused"
        return "${\(name)} in “\(field)” of operation \(operation.quoted) becomes a part of the"
            + " script, and the shell interprets it; " + remedy + (isList ? "" : more)
    }
}

extension GraphAssembler {
    /// The most warnings about scripts.
    private static let warningsMax = 20

    /// The values in the scripts of an operation that a shell could take for something else.
    ///
    /// - Parameter entries: the fields as the file writes them.
    func shellUses(in entries: [Node.Entry]) -> [ShellUse] {
        guard parameters.hasOrigins else { return [] }
        var uses: [ShellUse] = []
        for (field, script) in ShellScript.all(in: entries) {
            guard GraphParameters.hasDollar(script), let text = script.text,
                let pieces = GraphParameters.pieces(of: text)
            else { continue }
            for case .reference(let name) in pieces {
                guard let origin = parameters.origin(of: name),
                    !uses.contains(where: { $0.name == name })
                else { continue }
                uses.append(
                    ShellUse(
                        name: name,
                        field: field,
                        position: script.position,
                        origin: origin,
                        isList: parameters.isList(name),
                        isHidden: sets(name, entries)
                    )
                )
            }
        }
        return uses
    }

    /// Whether an operation with these fields, or the defaults, set the variable of a value.
    private func sets(_ name: String, _ entries: [Node.Entry]) -> Bool {
        func sets(_ entries: [Node.Entry]?) -> Bool {
            let environment = entries?.first { $0.key == OperationKey.environment.name }
            return environment?.value.entries?.contains { $0.key == name } == true
        }
        // The variables of elements come before those of the defaults.
        return sets(entries)
            || parameters.variables[name] != nil && sets(writtenDefaults?.entries)
    }

    /// Reports values from outside that a shell could take for something else.
    mutating func refuse(_ uses: [ShellUse], in operation: String) throws(Stop) {
        for use in uses {
            guard case .outside = use.origin else { continue }
            for text in parameters.texts(of: use.name) {
                guard let danger = ShellValue.danger(in: text) else { continue }
                try reader.fields.log.report(
                    .unsafeValue,
                    at: use.position,
                    text,
                    use.refusal(of: text, danger, in: operation)
                )
                break
            }
        }
    }

    mutating func warn(of uses: [ShellUse], in operation: String) {
        for use in uses where shellWarnings.count < Self.warningsMax {
            shellWarnings.append(
                GraphFileError.Problem(
                    .unsafeValue,
                    at: use.position,
                    use.name,
                    use.warning(in: operation)
                )
            )
        }
    }

    /// The origin of each variable of a repetition.
    ///
    /// - Parameters:
    ///   - written: the entry as the file writes it.
    ///   - value: its value without references.
    func origins(
        of repetition: Repetition,
        _ written: Node.Entry,
        _ value: Node
    ) -> [ValueOrigin?] {
        let used = parameters.origin(ofReferencesIn: written.value)
        return repetition.variables.map { variable in
            let values =
                written.key == OperationKey.forEach.name
                ? value : value.entries?.first { $0.key == variable }?.value
            return .stricter(used, values.flatMap { ValueOrigin(ofValuesIn: $0) })
        }
    }
}
