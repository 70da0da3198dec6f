import OperonModel

/// An operation that is repeated for each element of an output, as the operation that adds the
/// elements carries it: the fields of the file, and everything else in the file that they depend
/// on. So a worker reads an element as a graph file is read, when the output is there.
struct ElementTemplate {
    /// The name of the repeated operation.
    var name: String
    /// The operation whose output has the elements.
    var output: String
    /// The variables that each element sets; `nil`: each element is a value, which is `item`.
    var variables: [String]?
    /// Other operations that are repeated for the same output. `render[*]` in a dependency stands
    /// for the element with the same label.
    var siblings: [String] = []
    /// The directory to which relative directories are relative.
    var base: String?
    var parameters: [Node.Entry] = []
    var defaults: Node?
    /// The fields of the operation, except those that repeat it.
    var fields: Node

    /// As JSON, which a graph file can have as an `input`.
    ///
    /// - Returns: `wrong`: a value that JSON cannot represent as it is written.
    func encode(bytesMax: Int) -> (bytes: [UInt8], wrong: Node?) {
        var entries: [Node.Entry] = []
        func add(_ key: String, _ value: Node.Value) {
            entries.append(
                Node.Entry(key: key, keyPosition: .none, value: Node(value, at: .none))
            )
        }
        func list(_ texts: [String]) -> Node.Value {
            .sequence(texts.map { Node(.string($0), at: .none) })
        }
        add("name", .string(name))
        add("output", .string(output))
        if let variables { add("variables", list(variables)) }
        if !siblings.isEmpty { add("siblings", list(siblings)) }
        if let base { add("directory", .string(base)) }
        if !parameters.isEmpty { add("parameters", .mapping(parameters)) }
        if let defaults { add("defaults", defaults.value) }
        add("fields", fields.value)
        var bytes: [UInt8] = []
        let node = Node(.mapping(entries), at: .none)
        let wrong =
            Self.inexact(node) ?? JSONText.append(node, to: &bytes, bytesMax: bytesMax)
        return (bytes, wrong)
    }

    /// The first number or boolean that JSON would write in another way. Where a text is expected,
    /// it counts as it is written.
    private static func inexact(_ node: Node) -> Node? {
        switch node.value {
        case .null, .string: return nil
        case .bool(let text): return text == "true" || text == "false" ? nil : node
        case .number(let text): return JSONText.number(text) == text ? nil : node
        case .sequence(let elements):
            for element in elements { if let wrong = inexact(element) { return wrong } }
        case .mapping(let entries):
            for entry in entries { if let wrong = inexact(entry.value) { return wrong } }
        }
        return nil
    }

    /// Reads what `encode` wrote; `nil` for anything else.
    init?(_ bytes: [UInt8], limits: Limits) {
        guard let read = JSONReader.tree(bytes, limits), let entries = read.entries else {
            return nil
        }
        func value(_ key: String) -> Node? { entries.first { $0.key == key }?.value }
        func texts(_ key: String) -> [String]? { value(key)?.elements?.compactMap(\.text) }
        guard let name = value("name")?.text, !name.isEmpty, let output = value("output")?.text,
            let fields = value("fields"), fields.entries != nil
        else { return nil }
        self.name = name
        self.output = output
        self.fields = fields
        variables = texts("variables")
        siblings = texts("siblings") ?? []
        base = value("directory")?.text
        parameters = value("parameters")?.entries ?? []
        defaults = value("defaults")
        guard variables?.isEmpty != true else { return nil }
    }

    init(
        name: String,
        output: String,
        variables: [String]?,
        base: String?,
        parameters: [Node.Entry],
        defaults: Node?,
        fields: Node
    ) {
        self.name = name
        self.output = output
        self.variables = variables
        self.base = base
        self.parameters = parameters
        self.defaults = defaults
        self.fields = fields
    }
}

extension JSONReader {
    /// Reads a text that is one value; `nil`: it is none.
    static func tree(_ bytes: [UInt8], _ limits: Limits) -> Node? {
        do throws(Stop) {
            let (node, findings) = try value(bytes, limits: limits)
            return findings.isEmpty ? node : nil
        } catch {
            return nil
        }
    }
}
