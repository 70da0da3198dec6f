import OperonModel
import Testing

@testable import OperonRuntime

struct GraphRegisterTests {
    private func entry(_ name: String) -> GraphRegister.Entry {
        GraphRegister.Entry(
            name: name,
            submitter: "ann",
            submittedAt: WallTime(nanosecondsSince1970: 1)
        )
    }

    private func id(_ number: UInt32) -> GraphID { GraphID(rawValue: number) }

    @Test func `of a dropped graph the name stays, and its key may be used again`() {
        var register = GraphRegister()
        for name in ["a", "b", "a", "c"] { register.append(entry(name)) }
        let hash = ContentHash(of: [1])
        register.keepUse(of: "key", GraphRegister.Use(graph: id(2), hash: hash))
        register.keepUse(of: "other", GraphRegister.Use(graph: id(3), hash: hash))
        register.forget([id(1), id(2)])

        #expect(register.keptGraphs == [id(0), id(3)])
        #expect(register[id(2)].isTombstone && register[id(2)].name == "a")
        #expect(register[id(2)].submitter.isEmpty && register[id(0)].submitter == "ann")
        // The newest of a name, dropped or not.
        #expect(register.find("a") == id(2) && register.find("b") == id(1))
        #expect(register.use(of: "key") == nil && register.use(of: "other")?.graph == id(3))
    }

    @Test func `the latest is the newest that is kept`() {
        var register = GraphRegister()
        #expect(register.find("@latest") == nil)
        register.append(droppedNamed: "old")
        #expect(register.find("@latest") == nil && register.find("0") == id(0))
        register.append(entry("a"))
        register.append(entry("b"))
        register.forget([id(2)])
        #expect(register.find("@latest") == id(1))
        #expect(register.count == 3 && register.find("3") == nil)
    }

    @Test func `a key that was used for a newer graph stays with that`() {
        var register = GraphRegister()
        let hash = ContentHash(of: [1])
        for number: UInt32 in 0..<2 {
            register.append(entry("a"))
            register.keepUse(of: "key", GraphRegister.Use(graph: id(number), hash: hash))
        }
        register.forget([id(0)])
        #expect(register.use(of: "key")?.graph == id(1))
    }
}
