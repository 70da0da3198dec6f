/// How the graph file names what becomes of a repeated operation: its elements are `render[0]`,
/// `render[1]` and so on, and `render` is the group, which does nothing and depends on them.
package enum RepeatedNames {
    /// What is appended to the name of a repeated operation for the one that adds its elements.
    package static let addingSuffix = ".forEach"

    /// What a dependency appends to the name of a repeated operation for the outputs of all its
    /// elements.
    package static let eachSuffix = "[*]"

    /// The group in a name of the form `render[*]`; `nil`: it has another form.
    package static func group(ofEach name: String) -> String? {
        // Characters of a hostile name may combine with the brackets.
        let suffix = eachSuffix.utf8
        guard name.utf8.count >= suffix.count,
            name.utf8.suffix(suffix.count).elementsEqual(suffix)
        else { return nil }
        return String(Substring(name.utf8.dropLast(suffix.count)))
    }

    /// The group of an element with this name; `nil`: no element has such a name.
    package static func group(ofElement name: String) -> String? {
        guard name.utf8.last == UInt8(ascii: "]"),
            let start = name.utf8.firstIndex(of: UInt8(ascii: "[")), start > name.startIndex
        else { return nil }
        return String(Substring(name.utf8[..<start]))
    }

    /// Whether an operation is an element of this group, or adds its elements.
    package static func isPart(_ name: String, of group: String) -> Bool {
        name == group + addingSuffix || name.hasPrefix(group + "[")
    }
}
