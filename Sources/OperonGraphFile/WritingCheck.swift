import OperonModel

/// What a graph file cannot hold, found before anything is written: what passes is read back as it
/// was, durations to the nanosecond, lists without repetitions, JSON without white space.
struct WritingCheck {
    private let limits: Limits

    init(_ limits: Limits) { self.limits = limits }

    /// - Throws: the first thing that a file cannot hold, and what that is about.
    func check(_ graph: GraphDescription) throws(GraphFileError) {
        func refuse(_ thing: String, _ why: String) -> GraphFileError {
            let problem = GraphFileError.Problem(.unsupported, at: .none, thing, why)
            return GraphFileError.unfound(.problem(problem), file: graph.name)
        }
        do throws(Refusal) {
            try graph.check(limits)
        } catch .invalid(let field, let why) {
            throw refuse(field, "\(field): \(why)")
        } catch {
            throw refuse("", "\(error)")
        }
        var seen = SeenKeys<Void>()
        for queue in graph.queues {
            let known: Void? = seen.insert(queue.name, ())
            if known != nil || queue.maxConcurrentOperationCount ?? 0 > Int32.max {
                let why = known == nil ? "has a limit that no file may have" : "is defined twice"
                throw refuse(queue.name, "queue \(queue.name.quoted) " + why)
            }
        }
        var seenKeys = SeenKeys<Void>()
        for key in graph.keys {
            let known: Void? = seenKeys.insert(key.name, ())
            if known != nil || key.limit > Int32.max {
                let why = known == nil ? "has a limit that no file may have" : "is defined twice"
                throw refuse(key.name, "key \(key.name.quoted) " + why)
            }
        }
        for operation in graph.operations {
            if let why = refusal(of: operation) {
                throw refuse(operation.name, "operation \(operation.name.quoted) " + why)
            }
        }
    }

    /// Why an operation cannot be written, or `nil`.
    private func refusal(of operation: OperationDescription) -> String? {
        for dependency in operation.dependencies {
            if let why = refusal(ofName: dependency.name) { return "has a dependency that " + why }
        }
        switch operation.work {
        case .registered(_, let input): return refusal(ofInput: input, isVersioned: true)
        case .external(let input): return refusal(ofInput: input)
        case .nothing, .wait, .command: return nil
        }
    }

    private func refusal(ofInput input: Payload, isVersioned: Bool = false) -> String? {
        var plain = input
        if isVersioned, let version = input.version {
            guard (1...Int(Int32.max)).contains(version),
                input.contentType == Payload.json(version: version)
            else { return "has an input of version \(version)" }
            plain.contentType = Payload.json
        }
        guard plain.isEmpty || isJSON(plain) else { return "has an input that is not JSON" }
        return plain == .empty || !plain.isEmpty ? nil : "has an input that is not JSON"
    }

    /// What `FieldReader.name` says of it.
    private func refusal(ofName name: String) -> String? {
        if name.isEmpty { return "is empty" }
        if name.utf8.count > limits.nameBytes { return "is over \(limits.nameBytes) bytes long" }
        return name.hasControl ? "has a control character" : nil
    }

    /// JSON that is read back as the same value where it stands, within its operation.
    private func isJSON(_ input: Payload) -> Bool {
        guard input.contentType == Payload.json, input.bytes.first != 0xEF else { return false }
        var bounds = TreeBounds(limits)
        bounds.depth -= 1
        var parser = JSONParser(input.bytes, bounds: bounds)
        do {
            _ = try parser.value()
            return parser.isAtEnd() && parser.takeFindings().isEmpty
        } catch {
            return false
        }
    }
}
