/// How the graph file names what becomes of a repeated operation: its elements are `render[0]`,
/// `render[1]` and so on, and `render` is the group, which does nothing and depends on them.
package enum RepeatedNames {
    /// What is appended to the name of a repeated operation for the one that adds its elements.
    package static let addingSuffix = ".forEach"

    /// Whether an operation is an element of this group, or adds its elements.
    package static func isPart(_ name: String, of group: String) -> Bool {
        name == group + addingSuffix || name.hasPrefix(group + "[")
    }
}
