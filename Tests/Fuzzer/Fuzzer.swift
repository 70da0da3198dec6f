import FuzzTargets
import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

// The program of scripts/fuzz. It prints the targets, and the most bytes of their inputs. If
// libFuzzer is linked, which has a `main` of its own, and OPERON_FUZZ_TARGET names a target,
// libFuzzer chooses the bytes for it.

private func printTargets() {
    for target in FuzzTarget.all { print(target.name, target.bytesMax) }
}

#if OPERON_FUZZER
/// Set once, before there is a second thread.
nonisolated(unsafe) private var target: FuzzTarget?

@_cdecl("LLVMFuzzerInitialize")
public func initialize(_: UnsafeMutableRawPointer?, _: UnsafeMutableRawPointer?) -> CInt {
    guard let name = getenv("OPERON_FUZZ_TARGET") else {
        printTargets()
        exit(0)
    }
    target = FuzzTarget.named(String(cString: name))
    guard target != nil else { fatalError("OPERON_FUZZ_TARGET names no target") }
    return 0
}

/// Ends the process if the bytes break a rule: they are a finding.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    do {
        switch target?.function {
        case .now(let function): try function(bytes)
        case .later(let function):
            let loop = MultiThreadedEventLoopGroup.singleton.next()
            try loop.makeFutureWithTask { try await function(bytes) }.wait()
        case nil: break
        }
    } catch {
        fatalError("\(error)")
    }
    return 0
}
#else
@main enum Fuzzer {
    static func main() { printTargets() }
}
#endif
