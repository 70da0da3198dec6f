import OperonFaultKit
import OperonModel
import Testing

@testable import OperonWire

/// References to secrets in messages and in stores.
@Suite struct SecretTests {
    private var operation: OperationDescription {
        var operation = OperationDescription(name: "a", work: .command(Samples.secretCommand))
        operation.dependencies = [DependencyDescription("b")]
        return operation
    }

    @Test func `a store gives back the names of secrets`() throws {
        let other = OperationDescription(name: "b", work: .nothing)
        let graph = GraphDescription(name: "g", operations: [operation, other])
        let bytes = try StoreFormat.encode(graph, failFast: false)

        #expect(try StoreFormat.decodeAddition(bytes) == graph)
    }

    @Test func `a command with secrets has another policy than one without`() throws {
        var plain = operation
        plain.name = "c"
        plain.work = .command(Samples.command)
        let graph = GraphDescription(name: "g", operations: [operation, plain])
        var stored = StoredOperations()
        _ = try stored.append(try StoreFormat.encode(graph, failFast: false))
        var (one, other) = (StoredOperations.Outline(), StoredOperations.Outline())
        try stored.read(0, into: &one)
        try stored.read(1, into: &other)

        #expect(one.policy != other.policy)
        #expect(one.wantsInputs)
        #expect(one.workBytes > other.workBytes)
        #expect(try stored.dispatchedDescription(of: 0).work == operation.work)
    }

    /// Where an older program looks for the work of an operation, there is none: it refuses the
    /// operation, and does not run the command with an empty value.
    @Test func `an older program finds no work in an operation with secrets`() throws {
        let stored = try StoreFormat.encodeInGeneral(operation)
        #expect(try Self.fields(in: stored, stored.indices).map(\.number).contains(29))
        #expect(try !Self.fields(in: stored, stored.indices).map(\.number).contains(13))
        let sent = try Message.from(
            coordinator: Samples.dispatch(.command(Samples.secretCommand))
        ).encoded()
        var place = sent.indices
        // The dispatch of the envelope, and the operation of the dispatch.
        for number: UInt64 in [7, 2] {
            let found = try Self.fields(in: sent, place).first { $0.number == number }
            place = try #require(found).bytes
        }
        let numbers = try Self.fields(in: sent, place).map(\.number)
        #expect(numbers.last == 32)
        #expect(!numbers.contains(13))
    }

    private static func fields(
        in bytes: [UInt8],
        _ range: Range<Int>
    ) throws -> [FieldCursor.Field] {
        var cursor = FieldCursor(range)
        var fields: [FieldCursor.Field] = []
        while let field = try cursor.next(in: bytes) { fields.append(field) }
        return fields
    }
}

extension RawMessage {
    /// A command with a variable that refers to a secret.
    mutating func secretVariable(
        _ name: String,
        _ secret: String,
        value: String = "",
        again: Bool = false,
        field: UInt64 = 32
    ) {
        message(field) { command in
            command.string(1, "true")
            for _ in 0..<(again ? 2 : 1) {
                command.message(2) { variable in
                    variable.string(1, name)
                    if !value.isEmpty { variable.string(2, value) }
                    variable.string(3, secret)
                }
            }
        }
    }
}
