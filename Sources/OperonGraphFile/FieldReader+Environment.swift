import OperonModel

extension FieldReader {
    static let secretKey = "secret"

    /// Reads variables, each with its value or with `{ secret: NAME }`, into a command. `false`: a
    /// problem was reported.
    mutating func environment(
        _ node: Node,
        _ key: String,
        into command: inout CommandDescription
    ) throws(Stop) -> Bool {
        guard let entries = node.entries else {
            try mismatch(node, key, "a map of variables")
            return false
        }
        for entry in entries {
            guard OperationDescription.isVariable(entry.key) else {
                try log.report(
                    .invalidValue,
                    at: entry.keyPosition,
                    entry.key,
                    "\(entry.key.quoted) cannot be the name of a variable"
                )
                return false
            }
            if entry.value.entries != nil {
                guard let secret = try secret(entry) else { return false }
                command.secrets[entry.key] = secret
            } else {
                guard let value = try text(entry.value, entry.key) else { return false }
                command.environment[entry.key] = value
            }
        }
        guard command.secrets.count > SecretName.countMax else { return true }
        try log.report(
            .invalidValue,
            at: node.position,
            key,
            "\(command.secrets.count) secrets are more than a command may have, "
                + "\(SecretName.countMax)"
        )
        return false
    }

    /// Reads the name in `{ secret: NAME }`; `nil`: a problem was reported.
    private mutating func secret(_ variable: Node.Entry) throws(Stop) -> String? {
        guard SecretName.mayBeValue(of: variable.key) else {
            try log.report(
                .invalidValue,
                at: variable.keyPosition,
                variable.key,
                "\(variable.key.quoted) cannot have a secret as its value"
            )
            return nil
        }
        var found: Node?
        for entry in variable.value.entries ?? [] {
            guard entry.key == Self.secretKey else {
                try unknownKey(entry, among: [Self.secretKey])
                return nil
            }
            found = entry.value
        }
        guard let found else {
            try mismatch(variable.value, variable.key, "a string, or a map with “secret”")
            return nil
        }
        guard let name = found.text else {
            try mismatch(found, Self.secretKey, "the name of a secret")
            return nil
        }
        guard SecretName.isValid(name) else {
            try log.report(
                .invalidValue,
                at: found.position,
                name,
                "\(name.quoted) \(SecretName.hint)"
            )
            return nil
        }
        return name
    }
}
