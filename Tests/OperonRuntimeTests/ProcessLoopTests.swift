import COperonProcess
import Glibc
import OperonModel
import Testing

@testable import OperonRuntime

/// The thread that watches running processes.
@Suite(.timeLimit(.minutes(5))) struct ProcessLoopTests {
    private static func request(
        _ completion: @escaping @Sendable (SpawnRequest.Outcome) -> Void
    ) -> SpawnRequest {
        SpawnRequest(
            id: 1,
            arguments: ["true"],
            environment: [],
            path: "",
            directory: nil,
            niceness: 0,
            timeout: nil,
            grace: .zero,
            limits: ProcessLimits(CommandDescription(arguments: ["true"])),
            group: nil,
            logBytes: 0,
            outputPath: "/nowhere",
            stopSignal: StopSignal(),
            onLog: nil,
            state: nil,
            completion: completion
        )
    }

    /// The number of descriptors that an `epoll` watches, as the kernel tells it (proc(5)).
    private static func watchedCount(of loop: ProcessLoop) throws -> Int {
        let path = "/proc/self/fdinfo/\(loop.epoll.number)"
        let bytes = try #require(SmallFile.read(path))
        return String(decoding: bytes, as: UTF8.self)
            .split(separator: "\n").count { $0.hasPrefix("tfd:") }
    }

    /// The reading end of a pipe that nothing can write to any more.
    private static func endedPipe() throws -> Int32 {
        var ends: (reader: Int32, writer: Int32) = (-1, -1)
        try #require(operon_process_pipe(&ends.reader, &ends.writer) == 0)
        close(ends.writer)
        return ends.reader
    }

    private static func startedTrue() throws -> pid_t {
        var process: pid_t = 0
        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("true"), nil]
        defer { free(arguments[0]) }
        try #require(posix_spawn(&process, "/bin/true", nil, nil, &arguments, nil) == 0)
        return process
    }

    /// A child that is being started has copies of all descriptors of its parent.
    @Test func `a process that has ended is not watched, although others have its descriptors`()
        async throws
    {
        let loop = try ProcessLoop()
        let before = try Self.watchedCount(of: loop)
        let (output, error) = (try Self.endedPipe(), try Self.endedPipe())
        let process = try Self.startedTrue()
        let exit = operon_process_open(process)
        try #require(exit >= 0)
        let copies = [output, error, exit].map { dup($0) }

        await withCheckedContinuation { continuation in
            loop.add(
                RunningProcess(
                    process: process,
                    descriptor: Descriptor(owning: exit),
                    output: Descriptor(owning: output),
                    error: Descriptor(owning: error),
                    startedAt: SystemClock.now(),
                    place: nil,
                    request: Self.request { _ in continuation.resume() }
                )
            )
        }

        #expect(try Self.watchedCount(of: loop) == before)
        for copy in copies { close(copy) }
        await withCheckedContinuation { continuation in loop.close { continuation.resume() } }
    }
}
