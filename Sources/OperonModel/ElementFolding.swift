/// Finds the repeated operations in a list of operations, so that each is shown as one line.
///
/// A graph file names the elements `render[…]`, and their group, which follows them and does
/// nothing, `render`. What has these names in this order is a repeated operation, wherever the list
/// comes from. If the elements come from an output, the group follows the operation that adds them,
/// `render.forEach`, and the elements come later.
package struct ElementFolding: Sendable {
    /// One repeated operation.
    package struct Group: Hashable, Sendable {
        /// The plain name, which is that of the group.
        package let name: String
        /// The indices of the elements that the group follows; there is at least one, unless an
        /// operation adds them.
        package let elements: Range<Int>
        /// The index of the operation that adds the elements, which the group follows; `nil`: none
        /// does.
        package let adding: Int?
        /// The indices of the elements that were added.
        package fileprivate(set) var added: [Range<Int>] = []

        init(name: String, elements: Range<Int>, adding: Int? = nil) {
            self.name = name
            self.elements = elements
            self.adding = adding
        }

        /// The indices of all elements.
        package var indices: [Range<Int>] { (elements.isEmpty ? [] : [elements]) + added }

        /// The index of the group itself.
        package var index: Int { elements.upperBound }

        /// The name that stands for all elements.
        package var title: String { name + RepeatedNames.eachSuffix }
    }

    /// What an operation of the list was found to be, by the number of its repeated operation.
    package enum Finding: Hashable, Sendable {
        /// A group. Its elements, if it follows them, were listed before.
        case group(Int)
        /// An element that was added to a group.
        case element(Int)
    }

    /// In the order of the list.
    package private(set) var groups: [Group] = []
    /// The groups to which elements are added, by name. Only looked up.
    private var growing: [String: Int] = [:]
    /// The last operation, if it adds elements: its group follows.
    private var adding: (index: Int, name: String)?
    private static let addingSuffix = ".forEach"
    /// The number of operations.
    package private(set) var count = 0
    /// The names of the last operations that may be elements.
    private var candidates: [String] = []

    package init() {}

    /// The repeated operations of a graph.
    package init(_ operations: some Sequence<OperationDescription>) {
        for operation in operations { add(operation.name, kind: operation.work.kind) }
    }

    /// Whether elements are added to some of the groups.
    package var isGrowing: Bool { !growing.isEmpty }

    /// The group to which an operation of this name is added as an element.
    package func group(ofAdded name: String) -> Int? {
        guard !growing.isEmpty, name.utf8.last == UInt8(ascii: "]") else { return nil }
        for place in name.indices where name[place] == "[" {
            if let number = growing[String(name[..<place])] { return number }
        }
        return nil
    }

    /// Adds the next operation of the list.
    ///
    /// - Parameter kind: Asked only if the name and those before it leave a choice: it may have to
    ///   be decoded first.
    @discardableResult
    package mutating func add(
        _ name: String,
        kind: @autoclosure () -> String
    ) -> Finding? {
        defer { count += 1 }
        let adding = self.adding
        self.adding = nil
        if name.hasSuffix(Self.addingSuffix), kind() == Work.forEachKind {
            self.adding = (count, String(name.dropLast(Self.addingSuffix.count)))
        } else if let adding, adding.name == name, kind() == Work.nothingKind {
            groups.append(Group(name: name, elements: count..<count, adding: adding.index))
            growing[name] = groups.count - 1
            return .group(groups.count - 1)
        } else if let number = group(ofAdded: name) {
            candidates = []
            groups[number].append(count)
            return .element(number)
        }
        if let last = candidates.last, Self.isElement(last, of: name),
            kind() == Work.nothingKind
        {
            let length = candidates.reversed().prefix { Self.isElement($0, of: name) }.count
            candidates = []
            let group = Group(name: name, elements: count - length..<count)
            groups.append(group)
            return .group(groups.count - 1)
        }
        if name.utf8.last == UInt8(ascii: "]") {
            candidates.append(name)
        } else {
            candidates = []
        }
        return nil
    }

    /// Whether an operation of this name may be an element of the repeated operation `group`.
    private static func isElement(_ name: String, of group: String) -> Bool {
        let (name, group) = (name.utf8, group.utf8)
        return name.starts(with: group)
            && name.dropFirst(group.count).first == UInt8(ascii: "[")
    }
}

extension ElementFolding.Group {
    fileprivate mutating func append(_ index: Int) {
        if let last = added.last, last.upperBound == index {
            added[added.count - 1] = last.lowerBound..<index + 1
        } else {
            added.append(index..<index + 1)
        }
    }
}
