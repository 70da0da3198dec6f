/// The names of secrets, to which variables of commands refer. A secret's value is known only to
/// workers.
package enum SecretName {
    /// The most bytes of a name.
    package static let bytesMax = 128
    /// The most variables of one command that refer to secrets.
    package static let countMax = 64

    /// Whether a secret can have this name: 1…128 letters, digits, `.`, `_` and `-` of ASCII, not
    /// beginning with a dot. Such a name is the name of a file in any directory.
    package static func isValid(_ name: String) -> Bool {
        guard (1...bytesMax).contains(name.utf8.count), name.utf8.first != UInt8(ascii: ".") else {
            return false
        }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "-"):
                true
            default: false
            }
        }
    }

    /// What a name must be, for the end of a sentence.
    package static let hint =
        "cannot be the name of a secret: it must have 1 to \(bytesMax) letters, digits, “.”, “_” "
        + "or “-”, and not begin with a dot"

    /// Whether this variable may have a secret as its value: not `PATH`, which messages show if a
    /// program is not found.
    package static func mayBeValue(of variable: String) -> Bool { variable != "PATH" }
}

extension CommandDescription {
    /// Adds variables that the command does not set itself.
    package mutating func setMissing(
        _ variables: [String: String],
        secrets others: [String: String] = [:]
    ) {
        // Most commands have no secrets.
        guard !secrets.isEmpty || !others.isEmpty else {
            environment.merge(variables) { own, _ in own }
            return
        }
        let own = Set(environment.keys).union(secrets.keys)
        environment.merge(variables.filter { !own.contains($0.key) }) { first, _ in first }
        secrets.merge(others.filter { !own.contains($0.key) }) { first, _ in first }
    }

    func checkSecrets(of name: String) throws(Refusal) {
        guard !secrets.isEmpty else { return }
        let field = "secrets of “\(name)”"
        guard secrets.count <= SecretName.countMax else {
            let why = "\(secrets.count) variables have secrets; \(SecretName.countMax) may"
            throw .invalid(field: field, why: why)
        }
        // In sorted order, so that the error is always the same.
        for (variable, secret) in secrets.sorted(by: { $0.key < $1.key }) {
            let why: String
            if !OperationDescription.isVariable(variable) {
                why = "\(variable.debugDescription) cannot be the name of a variable"
            } else if !SecretName.isValid(secret) {
                why =
                    "\(String(secret.prefix(SecretName.bytesMax)).debugDescription) "
                    + SecretName.hint
            } else if environment[variable] != nil {
                why = "\(variable) has a value and a secret"
            } else if !SecretName.mayBeValue(of: variable) {
                why = "\(variable) cannot have a secret as its value"
            } else {
                continue
            }
            throw .invalid(field: field, why: why)
        }
    }
}
