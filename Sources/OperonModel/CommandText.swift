/// A command as a person would write it.
package enum CommandText {
    /// The line that `sh -c` runs, or the arguments, quoted as a shell needs it.
    package static func line(_ arguments: [String]) -> String {
        let shell = CommandDescription.shell("").dropLast()
        if arguments.count == 3, arguments.starts(with: shell) { return arguments[2] }
        return arguments.map(quoted).joined(separator: " ")
    }

    /// An argument as a shell needs it. It may still have control characters.
    package static func quoted(_ argument: String) -> String {
        let isPlain = argument.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "-_./:=@%+,".utf8.contains(byte)
            }
        }
        guard !isPlain || argument.isEmpty else { return argument }
        return "'"
            + argument.split(separator: "'", omittingEmptySubsequences: false)
            .joined(separator: #"'\''"#) + "'"
    }
}
