/// Names and amounts of resources as people write them.
package enum ResourceText {
    /// The longest name of a resource or a label, in bytes.
    package static let nameBytesMax = 64

    package static let nameHint =
        "cannot be a name here: a name has 1 to \(nameBytesMax) letters, digits, “.”, “_”, “-” "
        + "and “/”"

    /// Whether a resource or a label may have this name.
    package static func isName(_ name: String) -> Bool {
        (1...nameBytesMax).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
                    UInt8(ascii: "-"), UInt8(ascii: "/"):
                    true
                default: false
                }
            }
    }

    /// What the amount of a resource may be.
    package static func hint(_ name: String) -> String {
        switch name {
        case ResourceAmount.cpusName:
            "a number of processors such as 2 or 0.5, from \(text(1, of: name)) to "
                + "\(text(ResourceAmount.amountMax, of: name)), with at most three decimals"
        case ResourceAmount.memoryName:
            "\(ByteCountText.hint) to \(text(ResourceAmount.amountMax, of: name))"
        default: "a whole number from 1 to \(ResourceAmount.amountMax)"
        }
    }

    /// The resource that is probably meant by a name of no resource that machines have; `nil`: it
    /// may be the name of any resource.
    package static func meant(by name: String) -> String? {
        let meant: String
        switch name.lowercased() {
        case "cpu", ResourceAmount.cpusName: meant = ResourceAmount.cpusName
        case "gpu", ResourceAmount.gpusName: meant = ResourceAmount.gpusName
        case "mem", "ram", ResourceAmount.memoryName: meant = ResourceAmount.memoryName
        default: return nil
        }
        return meant == name ? nil : meant
    }

    /// An amount in the base unit of the resource, from 1; `nil`: the text is none.
    package static func amount(_ text: String, of name: String) -> Int? {
        let amount: Int? =
            switch name {
            case ResourceAmount.cpusName: thousandths(text)
            case ResourceAmount.memoryName: ByteCountText.count(text)
            default:
                text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
                    ? Int(text) : nil
            }
        guard let amount, (1...ResourceAmount.amountMax).contains(amount) else { return nil }
        return amount
    }

    /// The amount as `amount` reads it.
    package static func text(_ amount: Int, of name: String) -> String {
        switch name {
        case ResourceAmount.cpusName: cpus(amount)
        case ResourceAmount.memoryName: ByteCountText.text(amount)
        default: String(amount)
        }
    }

    /// An amount in the base unit of the resource as processors, bytes or whole units.
    package static func wholeUnits(_ amount: Double, of name: String) -> Double {
        name == ResourceAmount.cpusName ? amount / Double(ResourceAmount.cpuUnit) : amount
    }

    /// `gpus 1, memory 8GiB`.
    package static func text(_ amounts: ResourceAmounts) -> String {
        amounts.all.map { "\($0.name) \(text($0.amount, of: $0.name))" }.joined(separator: ", ")
    }

    /// A decimal number with at most three decimals, in thousandths.
    private static func thousandths(_ text: String) -> Int? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2,
            parts.allSatisfy({ part in
                !part.isEmpty && part.utf8.allSatisfy { (48...57).contains($0) }
            }),
            let whole = Int(parts[0])
        else { return nil }
        let (units, overflow) = whole.multipliedReportingOverflow(by: ResourceAmount.cpuUnit)
        guard !overflow else { return nil }
        guard parts.count == 2 else { return units }
        guard parts[1].utf8.count <= 3, let decimals = Int(parts[1]) else { return nil }
        let scale = [100, 10, 1][parts[1].utf8.count - 1]
        let (sum, isOver) = units.addingReportingOverflow(decimals * scale)
        return isOver ? nil : sum
    }

    private static func cpus(_ thousandths: Int) -> String {
        let whole = thousandths / ResourceAmount.cpuUnit
        let rest = thousandths % ResourceAmount.cpuUnit
        guard rest > 0 else { return String(whole) }
        var decimals = String(rest)
        decimals = String(repeating: "0", count: 3 - decimals.utf8.count) + decimals
        while decimals.hasSuffix("0") { decimals.removeLast() }
        return "\(whole).\(decimals)"
    }
}

extension ResourceDemand {
    /// `gpus 1, memory 8GiB, “region” must be “eu”`, for a sentence.
    package var text: String {
        let amounts = resources.isEmpty ? [] : [ResourceText.text(resources)]
        let enforcement = isEnforced ? ["enforcement (--control-group)"] : []
        let secrets = needsSecrets ? ["secrets (--secrets)"] : []
        return (amounts + requirements.map(\.text) + enforcement + secrets)
            .joined(separator: ", ")
    }

    /// What the worker that comes closest lacks, for a sentence; `nil`: there is no worker.
    package func lacking(nearestOf offers: [WorkerOffer]) -> String? {
        guard let all = offers.map({ unmet(by: $0) }).min(by: { $0.count < $1.count }) else {
            return nil
        }
        let more = all.count - Self.namedClausesMax
        let named = all.prefix(Self.namedClausesMax).joined(separator: "; ")
        return more > 0 ? "\(named); and \(more) more" : named
    }

    /// The most clauses that a sentence has.
    private static let namedClausesMax = 4

    /// The amounts for programs: `gpus=1,memory=8GiB`. Different amounts have different texts.
    package var resourceText: String {
        resources.all.map { "\($0.name)=\(ResourceText.text($0.amount, of: $0.name))" }
            .joined(separator: ",")
    }

    /// The requirements for programs, as Kubernetes writes label selectors:
    /// `arch in (arm64,x86_64),region=eu`. Different requirements have different texts.
    package var selector: String { requirements.map(\.selector).joined(separator: ",") }
}

extension WorkerRequirement {
    /// As Kubernetes writes label selectors.
    package var selector: String {
        switch condition {
        case .oneOf(let values) where values.count == 1: "\(label)=\(Self.quoted(values[0]))"
        case .oneOf(let values): "\(label) in \(Self.list(values))"
        case .noneOf(let values): "\(label) notin \(Self.list(values))"
        case .exists(true): label
        case .exists(false): "!\(label)"
        }
    }

    private static func list(_ values: [String]) -> String {
        "(" + values.map(quoted).joined(separator: ",") + ")"
    }

    /// A value that could be taken for something else is in quotes.
    private static func quoted(_ value: String) -> String {
        guard !ResourceText.isName(value) else { return value }
        var quoted = "\"".unicodeScalars
        for scalar in value.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { quoted.append("\\") }
            quoted.append(scalar)
        }
        return String(quoted) + "\""
    }

    /// The most values that a sentence names.
    private static let namedValuesMax = 5

    /// `region must be eu`, for a sentence.
    package var text: String {
        func list(_ values: [String]) -> String {
            let named = values.prefix(Self.namedValuesMax).map { "“\($0)”" }
            let more = values.count - named.count
            return (named + (more > 0 ? ["\(more) more"] : [])).joined(separator: " or ")
        }
        return switch condition {
        case .oneOf(let values): "“\(label)” must be \(list(values))"
        case .noneOf(let values): "“\(label)” must not be \(list(values))"
        case .exists(true): "“\(label)” must be there"
        case .exists(false): "“\(label)” must not be there"
        }
    }
}
