import OperonModel
import Testing

/// `@Secret`, alone and within other values.
@Suite struct SecretValueTests {
    private struct Login: Hashable {
        var user: String
        @Secret var password: String
        @Secret var key: [UInt8]?
    }

    private enum Proof {
        case login(Login)
    }

    private static func dumped(_ value: Any) -> String {
        var text = ""
        dump(value, to: &text)
        return text
    }

    @Test func `nothing that prints a value shows its secrets`() {
        let login = Login(user: "ann", password: "s3cret", key: [42, 43])
        for value: Any in [
            login, [login], ["a": login], Proof.login(login), Optional(login) as Any,
        ] {
            for text in ["\(value)", String(reflecting: value), Self.dumped(value)] {
                #expect(text.contains("ann") && text.contains("***"), "\(text)")
                #expect(!text.contains("s3cret") && !text.contains("42"), "\(text)")
            }
        }
    }

    @Test func `a secret is used as what it is`() {
        var login = Login(user: "ann", password: "s3cret", key: [1])
        #expect(login.password == "s3cret" && login.key == [1])
        let other = login
        login.password = "other"
        #expect(login != other)
        login.password = other.password
        #expect(login == other && login.hashValue == other.hashValue)
    }
}
