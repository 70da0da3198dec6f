import OperonModel

/// How an operation with `forEach` or `matrix` is repeated: its variables, and the values that they
/// have in each element.
struct Repetition {
    /// The variable of `forEach`.
    static let itemVariable = "item"

    let variables: [String]
    /// Who has written the values of each variable.
    var origins: [ValueOrigin?] = []
    /// The values of each variable.
    private let lists: [RepetitionValues]
    /// Whether the lists are taken side by side; otherwise as a product.
    private let isZipped: Bool
    /// `forEach`: labels have only the value.
    private let isForEach: Bool
    /// Combinations that are left out, by the variables that they name: the index of each variable,
    /// and the texts that these have.
    private var excluded: [[Int]: Set<[String]>] = [:]
    /// The values of further elements.
    private var included: [[Node]] = []
    /// The number of combinations, with the excluded ones.
    private let combinationCount: Int

    /// One element.
    struct Element {
        /// What follows the name of the operation: `[a.png]`, `[width=200,file=a.png]`.
        let label: String
        /// The values, in the order of the variables.
        let values: [Node]
    }

    /// The values of `forEach`.
    init(forEach values: RepetitionValues) {
        variables = [Self.itemVariable]
        lists = [values]
        isZipped = false
        isForEach = true
        combinationCount = values.count
    }

    /// The values of a `matrix`. With `isZipped`, all lists have the same length.
    init(_ lists: [(variable: String, values: RepetitionValues)], isZipped: Bool) {
        variables = lists.map(\.variable)
        self.lists = lists.map(\.values)
        self.isZipped = isZipped
        isForEach = false
        var count = isZipped ? lists.first?.values.count ?? 0 : 1
        if !isZipped {
            for list in lists {
                let (product, isTooLarge) = count.multipliedReportingOverflow(by: list.values.count)
                count = isTooLarge ? .max : product
            }
        }
        combinationCount = count
    }

    /// Leaves out the combinations in which these variables, by index, have these texts.
    mutating func exclude(_ texts: [Int: String]) {
        let named = texts.sorted { $0.key < $1.key }
        excluded[named.map(\.key), default: []].insert(named.map(\.value))
    }

    /// Adds an element with these values, in the order of the variables.
    mutating func include(_ values: [Node]) { included.append(values) }

    /// The texts of the values of a variable.
    func texts(of variable: Int) -> RepetitionTexts { RepetitionTexts(lists[variable]) }

    /// The number of values that are compared for each index.
    var exclusionCount: Int { excluded.keys.reduce(0) { $0 + $1.count } }

    /// The number of indices of `element(at:)`.
    var indexCount: Int {
        let (sum, isTooLarge) = combinationCount.addingReportingOverflow(included.count)
        return isTooLarge ? .max : sum
    }

    /// The element of an index; `nil`: it is excluded. In a product, the last variable changes
    /// fastest. Included elements come last.
    func element(at index: Int) -> Element? {
        guard index < combinationCount else {
            return element(included[index - combinationCount])
        }
        var values: [Node] = []
        values.reserveCapacity(lists.count)
        if isZipped {
            for list in lists { values.append(list[index]) }
        } else {
            var rest = index
            for list in lists.reversed() {
                values.append(list[rest % list.count])
                rest /= list.count
            }
            values.reverse()
        }
        let isExcluded = excluded.contains { named, texts in
            texts.contains(named.map { values[$0].text ?? "" })
        }
        return isExcluded ? nil : element(values)
    }

    private func element(_ values: [Node]) -> Element {
        var label = "["
        for (variable, value) in zip(variables, values) {
            if !isForEach { label += (label.utf8.count > 1 ? "," : "") + variable + "=" }
            label += value.text ?? ""
        }
        return Element(label: label + "]", values: values)
    }
}

/// The texts of the values of one variable, to look them up.
struct RepetitionTexts {
    private let values: RepetitionValues
    private let texts: Set<String>

    init(_ values: RepetitionValues) {
        self.values = values
        if case .list(let nodes) = values {
            texts = Set(nodes.compactMap(\.text))
        } else {
            texts = []
        }
    }

    func contains(_ text: String) -> Bool {
        guard case .range(let first, let step, let count, _) = values else {
            return texts.contains(text)
        }
        guard let value = Int(text), String(value) == text else { return false }
        let last = first + (count - 1) * step
        return (min(first, last)...max(first, last)).contains(value)
            && value.subtractingReportingOverflow(first).partialValue % step == 0
    }
}

/// The values of one variable of a repetition.
enum RepetitionValues {
    case list([Node])
    /// `count` integers from `first`, `step` apart; at least one.
    case range(first: Int, step: Int, count: Int, at: Position)

    var count: Int {
        switch self {
        case .list(let nodes): nodes.count
        case .range(_, _, let count, _): count
        }
    }

    subscript(index: Int) -> Node {
        switch self {
        case .list(let nodes): nodes[index]
        case .range(let first, let step, _, let position):
            Node(.number(text: String(first + index * step)), at: position)
        }
    }

    /// Why a text is no range.
    enum RangeProblem: Error {
        /// It does not have the form of one.
        case form
        case zeroStep
        /// The step leads away from the end; `suggestion` has one that leads to it.
        case empty(suggestion: String)
        /// More values than an integer counts.
        case tooLong
    }

    /// Reads `1..500`, or with a step `0..100..5`. Both ends belong to the range.
    static func range(_ text: String, at position: Position) throws(RangeProblem) -> Self {
        let parts = text.split(separator: "..", omittingEmptySubsequences: false)
        guard (2...3).contains(parts.count), let first = Int(parts[0]), let last = Int(parts[1]),
            let step = parts.count == 3 ? Int(parts[2]) : 1
        else { throw .form }
        guard step != 0 else { throw .zeroStep }
        guard first == last || (first < last) == (step > 0) else {
            let (turned, isTooLarge) = Int(0).subtractingReportingOverflow(step)
            throw .empty(suggestion: "\(first)..\(last)..\(isTooLarge ? 1 : turned)")
        }
        let (distance, isTooLong) = last.subtractingReportingOverflow(first)
        guard !isTooLong else { throw .tooLong }
        let (steps, isTooMany) = distance.dividedReportingOverflow(by: step)
        guard !isTooMany, steps < .max else { throw .tooLong }
        return .range(first: first, step: step, count: steps + 1, at: position)
    }
}
