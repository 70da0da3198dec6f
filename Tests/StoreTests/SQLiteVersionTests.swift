import OperonPorts
import Testing

@testable import OperonSQLite

@Suite struct SQLiteVersionTests {
    @Test func `an SQLite that does not know strict tables is refused`() throws {
        for text in ["3.36.0", "3.8", "2.99.1"] {
            let version = try #require(SQLiteVersion(text))
            #expect(throws: StoreError.self) { try version.check() }
        }
        for text in ["3.37", "3.40.1", "4.0"] { try #require(SQLiteVersion(text)).check() }
        #expect(SQLiteVersion("three") == nil)
        // This machine's does: every other test here opens stores.
        try SQLiteVersion.current().check()
    }
}
