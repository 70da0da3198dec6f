import Glibc
import Testing

@testable import OperonRuntime

/// What a process shows of itself to others of its user. In processes of their own.
@Suite(.timeLimit(.minutes(5))) struct OwnProcessTests {
    /// prctl(PR_GET_DUMPABLE), which Swift cannot call: it takes any number of arguments.
    private static func isDumpable() throws -> Bool {
        typealias Call = @convention(c) (Int32, UInt, UInt, UInt, UInt) -> Int32
        let symbol = try #require(dlsym(nil, "prctl"))
        return unsafeBitCast(symbol, to: Call.self)(3, 0, 0, 0, 0) == 1
    }

    @Test func `a process that conceals itself can be read by no other of its user`() async {
        await #expect(processExitsWith: .success) {
            unsetenv("OPERON_INPUTS")
            try #require(try Self.isDumpable())

            OwnProcess.conceal()

            try #require(try !Self.isDumpable())
            // What it starts is visible again: the guard must find it.
            let runner = try ProcessRunner(
                ProcessRunner.Configuration(environment: ProcessSupport.environment)
            )
            let owner = await runner.shell("stat -c %u /proc/self/environ").lines
            try #require(owner == ["\(getuid())"])
            await runner.shutdown()
        }
    }

    @Test func `a process of an operation stays visible to the guard that ends it`() async {
        await #expect(processExitsWith: .success) {
            setenv("OPERON_INPUTS", "/tmp/somewhere/1.json", 1)

            OwnProcess.conceal()

            try #require(try Self.isDumpable())
        }
    }

    @Test func `a process that gives way does so with every thread it has and will have`() async {
        await #expect(processExitsWith: .success) {
            let kind = __priority_which_t(PRIO_PROCESS.rawValue)
            let before = try SerialThread(name: "before")
            let known = Machine.numbers(of: "", in: "/proc/self/task")
            OwnProcess.giveWay()
            let after = try SerialThread(name: "after")
            // 0 is the calling thread.
            let own = await [
                before.perform { getpriority(kind, 0) }, after.perform { getpriority(kind, 0) },
            ]
            try #require(own == [19, 19])
            // Threads of the runtime's pool come and go meanwhile.
            let priorities = known.compactMap { thread -> Int32? in
                errno = 0
                let priority = getpriority(kind, id_t(thread))
                return errno == ESRCH ? nil : priority
            }
            try #require(!priorities.isEmpty && priorities.allSatisfy { $0 == 19 })
        }
    }

    @Test func `a secret is taken out of the environment, and still known`() async {
        await #expect(processExitsWith: .success) {
            setenv("SECRET_OF_TEST", "s3cret", 1)
            let value = try #require(getenv("SECRET_OF_TEST"))

            try #require(OwnProcess.secret("SECRET_OF_TEST") == "s3cret")

            try #require((0..<6).allSatisfy { value[$0] == 0 })
            try #require(OwnProcess.environment["SECRET_OF_TEST"] == "")
            try #require(OwnProcess.secret("SECRET_OF_TEST") == "s3cret")
            try #require(OwnProcess.secret("NO_SECRET_OF_TEST") == nil)
        }
    }
}
