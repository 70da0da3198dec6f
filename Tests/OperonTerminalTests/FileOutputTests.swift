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
