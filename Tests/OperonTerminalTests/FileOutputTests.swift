import Foundation
import OperonTerminal
import Testing

@Suite struct FileOutputTests {
    @Test func `a pipe is no terminal, has no size and takes every byte`() throws {
        let pipe = Pipe()
        let output = FileOutput(descriptor: pipe.fileHandleForWriting.fileDescriptor)

        #expect(!output.isTerminal)
        #expect(output.size() == nil)
        #expect(output.isWritable())
        output.write(Array("all of it\n".utf8))
        try pipe.fileHandleForWriting.close()

        let read = try pipe.fileHandleForReading.readToEnd()
        #expect(read == Data("all of it\n".utf8))
    }

    @Test func `a write that fails is told of, and a reader who left is not`() throws {
        let full = try #require(FileHandle(forWritingAtPath: "/dev/full"))
        let output = FileOutput(descriptor: full.fileDescriptor)
        #expect(output.failure == nil)
        output.write(Array("lost\n".utf8))
        #expect(output.failure == "No space left on device")

        let pipe = Pipe()
        let left = FileOutput(descriptor: pipe.fileHandleForWriting.fileDescriptor)
        try pipe.fileHandleForReading.close()
        signal(SIGPIPE, SIG_IGN)
        left.write(Array("lost\n".utf8))
        #expect(left.failure == nil)
    }

    @Test func `a full pipe is not writable`() throws {
        let pipe = Pipe()
        let descriptor = pipe.fileHandleForWriting.fileDescriptor
        #expect(fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0)
        let chunk = [UInt8](repeating: 0, count: 4_096)
        while chunk.withUnsafeBytes({ write(descriptor, $0.baseAddress, $0.count) }) > 0 {}

        #expect(!FileOutput(descriptor: descriptor).isWritable())
    }

    @Test func `a terminal says its size as it is now`() throws {
        var master: Int32 = -1
        var slave: Int32 = -1
        var size = winsize(ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0)
        try #require(openpty(&master, &slave, nil, nil, &size) == 0)
        defer {
            close(master)
            close(slave)
        }
        let output = FileOutput(descriptor: slave)
        #expect(output.isTerminal)
        #expect(output.size() == TerminalSize(columns: 100, rows: 24))

        size.ws_col = 20
        try #require(ioctl(master, UInt(TIOCSWINSZ), &size) == 0)

        #expect(output.size() == TerminalSize(columns: 20, rows: 24))
    }

    @Test func `a closed descriptor ends a write instead of the program`() {
        FileOutput(descriptor: -1).write(Array("nobody reads this".utf8))
        #expect(FileOutput(descriptor: -1).size() == nil)
    }
}
