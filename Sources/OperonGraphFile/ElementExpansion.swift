package import OperonModel
package import OperonPorts

/// Makes the elements of operations that are repeated for an output, with the code that reads
/// graph files.
package struct ElementExpansion: OutputElementReader {
    private let limits: Limits

    package init(limits: Limits = Limits()) { self.limits = limits }

    package func elements(
        of template: Payload,
        output: (String) throws(OutputElementError) -> Payload?
    ) throws(OutputElementError) -> any OutputElements {
        guard let template = ElementTemplate(template.bytes, limits: limits) else {
            throw OutputElementError("its input is not what a graph file makes of “forEach”")
        }
        let name = template.output.quoted
        guard let found = try output(template.output), !found.isEmpty else {
            throw OutputElementError(
                "\(name) left no output; “forEach” needs a list, which a command writes to"
                    + " $OPERON_OUTPUT"
            )
        }
        guard let node = JSONReader.tree(found.bytes, limits) else {
            throw OutputElementError("the output of \(name) is not JSON")
        }
        let reader = OutputReader(template: template, limits: limits)
        return ExpandedElements(template, try reader.repetition(node), limits)
    }
}

/// Reads the output of an operation as the elements of another one.
private struct OutputReader {
    let template: ElementTemplate
    let limits: Limits

    private func problem(_ place: Int, _ what: String) -> OutputElementError {
        OutputElementError(
            "element \(place) (counted from 0) of the output of \(template.output.quoted) \(what)"
        )
    }

    func repetition(_ node: Node) throws(OutputElementError) -> Repetition {
        var repetition: Repetition
        if let elements = node.elements {
            try check(count: elements.count)
            if let variables = template.variables {
                repetition = try rows(of: elements, variables)
            } else {
                for (place, element) in elements.enumerated() { try check(element, place) }
                repetition = Repetition(forEach: .list(elements))
            }
            try checkLabels(of: repetition)
        } else if let range = try range(node) {
            try check(count: range.count)
            for place in [0, range.count - 1] { try check(range[place], place) }
            repetition = Repetition(forEach: range)
        } else {
            let wanted =
                template.variables == nil
                ? "a list, or a range such as \"1..500\"" : "a list of maps"
            throw OutputElementError(
                "the output of \(template.output.quoted) is \(Self.found(node)); “forEach” needs"
                    + " \(wanted)"
            )
        }
        repetition.origins = repetition.variables.map { _ in .outside(.output(template.output)) }
        return repetition
    }

    /// What a value is, in the words of JSON.
    private static func found(_ node: Node) -> String { node.isNull ? "null" : node.kindName }

    private func check(count: Int) throws(OutputElementError) {
        guard count >= limits.operationsPerGraph else { return }
        throw OutputElementError(
            "the output of \(template.output.quoted) has \(count) elements, and a graph has at most"
                + " \(limits.operationsPerGraph) operations"
        )
    }

    /// The values of a range, of which every label is another one; `nil`: it is none.
    private func range(_ node: Node) throws(OutputElementError) -> RepetitionValues? {
        guard template.variables == nil, case .string(let text) = node.value else { return nil }
        do throws(RepetitionValues.RangeProblem) {
            return try RepetitionValues.range(text, at: .none)
        } catch {
            guard let message = RepetitionReader.message(for: error, text) else { return nil }
            throw OutputElementError("in the output of \(template.output.quoted), \(message)")
        }
    }

    /// One list of values for each variable, side by side.
    private func rows(
        of elements: [Node],
        _ variables: [String]
    ) throws(OutputElementError) -> Repetition {
        var lists = variables.map { _ in [Node]() }
        for (place, element) in elements.enumerated() {
            guard let entries = element.entries else {
                let wanted = variables.map(\.quoted).joined(separator: ", ")
                throw problem(place, "is \(Self.found(element)); it must be a map with \(wanted)")
            }
            var values = [Node?](repeating: nil, count: variables.count)
            for entry in entries {
                guard let variable = variables.firstIndex(of: entry.key) else {
                    throw problem(place, "has \(entry.key.quoted), which is no variable")
                }
                values[variable] = entry.value
            }
            for (variable, value) in values.enumerated() {
                guard let value else {
                    throw problem(place, "has no \(variables[variable].quoted)")
                }
                try check(value, place, variables[variable])
                lists[variable].append(value)
            }
        }
        let named = zip(variables, lists).map { (variable: $0, values: RepetitionValues.list($1)) }
        return Repetition(named, isZipped: true)
    }

    private func check(
        _ node: Node,
        _ place: Int,
        _ variable: String? = nil
    ) throws(OutputElementError) {
        let subject = variable.map { "has a \($0.quoted) that " } ?? ""
        guard let text = node.text else {
            throw problem(
                place,
                subject + "is \(Self.found(node)); it must be a string, a number, true or false"
            )
        }
        guard !text.hasControl else {
            throw problem(
                place,
                subject + "has a control character, and names of operations have none"
            )
        }
        guard template.name.utf8.count + text.utf8.count + 2 > limits.nameBytes else { return }
        throw problem(
            place,
            subject + "has \(text.utf8.count) bytes, and with it the name of the operation has more"
                + " than \(limits.nameBytes)"
        )
    }

    private func checkLabels(of repetition: Repetition) throws(OutputElementError) {
        var places: [String: Int] = [:]
        places.reserveCapacity(repetition.indexCount)
        for place in 0..<repetition.indexCount {
            guard let label = repetition.element(at: place)?.label else { continue }
            guard label != RepeatedNames.eachSuffix else {
                throw problem(place, "is “*”, which stands for all elements in a dependency")
            }
            let length = template.name.utf8.count + label.utf8.count
            guard length <= limits.nameBytes else {
                throw problem(
                    place,
                    "gives the operation a name of \(length) bytes, which is over the limit of"
                        + " \(limits.nameBytes)"
                )
            }
            guard let earlier = places.updateValue(place, forKey: label) else { continue }
            throw problem(
                place,
                "gives the operation the name \((template.name + label).quoted), and so does"
                    + " element \(earlier)"
            )
        }
    }
}

/// The operations for the elements of an output.
private struct ExpandedElements: OutputElements {
    let name: String
    let count: Int
    private let template: ElementTemplate
    private let repetition: Repetition
    private let siblings: Set<String>
    private var assembler: GraphAssembler
    private var nextIndex = 0
    private var isPrepared = false

    init(_ template: ElementTemplate, _ repetition: Repetition, _ limits: Limits) {
        self.template = template
        self.repetition = repetition
        name = template.name
        count = repetition.indexCount
        siblings = Set(template.siblings)
        assembler = GraphAssembler(
            limits: limits,
            base: template.base,
            isYAML: false,
            given: [],
            expandedBytesMax: limits.graphFileBytes
        )
        assembler.readsFiles = false
    }

    mutating func next(atMost count: Int) throws(OutputElementError) -> [OperationDescription] {
        let end = min(self.count, nextIndex + max(1, count))
        var stop: Stop?
        var wrong: Int?
        do throws(Stop) {
            if !isPrepared {
                isPrepared = true
                try assembler.prepare(template)
            }
            wrong = try assembler.addElements(
                nextIndex..<end,
                of: repetition,
                in: name,
                at: .none,
                template.fields
            )
        } catch {
            stop = error
        }
        if let error = assembler.reader.fields.log.error(after: stop, file: "") {
            let place = wrong.map { "element \($0) (counted from 0): " } ?? ""
            throw OutputElementError(place + error.problems[0].message)
        }
        nextIndex = end
        return assembler.takeOperations().map(resolved)
    }

    /// The operation with the elements of other operations that belong to it, by name.
    private func resolved(_ operation: OperationDescription) -> OperationDescription {
        guard !siblings.isEmpty else { return operation }
        var operation = operation
        let label = Substring(operation.name.utf8.dropFirst(name.utf8.count))
        for index in operation.dependencies.indices {
            let other = operation.dependencies[index].name
            guard let target = RepeatedNames.group(ofEach: other), siblings.contains(target)
            else { continue }
            operation.dependencies[index].name = target + label
        }
        return operation
    }
}
