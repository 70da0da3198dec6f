extension String {
    /// The beginning of the text, at most so many bytes of whole characters.
    package func prefix(bytes: Int) -> String {
        guard utf8.count > bytes else { return self }
        var text = ""
        for character in self {
            guard text.utf8.count + character.utf8.count <= bytes else { break }
            text.append(character)
        }
        return text
    }
}
