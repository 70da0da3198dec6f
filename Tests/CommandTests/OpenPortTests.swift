import Foundation
import Glibc
import OperonFaultKit
import Testing

/// Where the programs listen: what the kernel says, not what they say.
@Suite(.timeLimit(.minutes(5))) struct OpenPortTests {
    private static func answers(_ program: Program) async throws -> [String] {
        try await program.says("answers at")
        return try ProcessFacts.listeningAddresses(program.process)
    }

    @Test func `but for the page of up, no program takes connections over TCP unless told to`()
        async throws
    {
        try await Workspace.run { workspace in
            let up = try workspace.start("operon", ["up", "--slots", "1"])
            let open = try await Self.answers(up)
            #expect(open.map { $0.prefix { $0 != ":" } } == ["127.0.0.1"], "\(up.errors.text)")
            up.signal(SIGTERM)
            #expect(try await up.end().end == .exit(0))

            // Nothing but the broker's address, which the programs need, and the prefix.
            let broker = ["--broker", try Workspace.testBroker(), "--prefix", workspace.prefix]
            let coordinator = try workspace.start("operon", ["coordinator"] + broker)
            let worker = try workspace.startWorkers(1, slots: 1)[0]
            try await worker.says("welcomed by the coordinator")
            #expect(try await Self.answers(coordinator) == [])
            #expect(try ProcessFacts.listeningAddresses(worker.process) == [])
            coordinator.signal(SIGTERM)
            #expect(try await coordinator.end().end == .exit(0))

            let gate = workspace.path("gate")
            #expect(mkfifo(gate, 0o600) == 0)
            let file = try workspace.write(
                "g.yaml",
                "operations: { a: { run: 'touch started && read line < gate' } }"
            )
            for place in [Place.broker, .inProcess] {
                let run = try workspace.startRun(file, on: place)
                try await workspace.waitForFile("started")
                #expect(try ProcessFacts.listeningAddresses(run.process) == [], "\(place)")
                #expect(try ProcessFacts.listeningAddresses(worker.process) == [])
                // Returns when the operation reads.
                try Data("go\n".utf8).write(to: URL(fileURLWithPath: gate), options: [])
                #expect(try await run.end().end == .exit(0))
                #expect(unlink(workspace.path("started")) == 0)
            }
        }
    }

    @Test func `a port without a host is one of this machine alone`() async throws {
        try await Workspace.run { workspace in
            let port = try LoopbackPort.take()
            for listen in [":\(port)", "\(port)", "127.0.0.1:\(port)", "localhost:\(port)"] {
                let up = try workspace.start("operon", ["up", "--slots", "1", "--listen", listen])
                #expect(try await Self.answers(up) == ["127.0.0.1:\(port)"], "\(listen)")
                up.signal(SIGTERM)
                #expect(try await up.end().end == .exit(0))
            }
        }
    }

    @Test func `an address that others reach is listened on with TLS and tokens, and not else`()
        async throws
    {
        try await Workspace.run { workspace in
            let made = try workspace.start(
                "/usr/bin/openssl",
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=a"
                    .split(separator: " ").map(String.init)
                    + ["-keyout", "key.pem", "-out", "certificate.pem"]
            )
            #expect(try await made.end().end == .exit(0))
            _ = try workspace.write("tokens", "ann:the-token-of-ann-0123\n")
            #expect(chmod(workspace.path("tokens"), 0o600) == 0)
            let tls = ["--tls-certificate", "certificate.pem", "--tls-key", "key.pem"]
            let tokens = ["--tokens", "tokens"]
            // The address, and what is missing without TLS and tokens, TLS, and tokens.
            let others = "can be reached from other machines"
            for (listen, isExposed) in [
                ("127.0.0.1", false), ("0.0.0.0", true), ("192.0.2.7", true), ("[::]", true),
                ("a.example", true), ("unix", false),
            ] {
                for options in [[], tls, tokens, tls + tokens] {
                    let address =
                        listen == "unix" ? "unix:\(workspace.path("s"))" : "\(listen):0"
                    let arguments = ["up", "--slots", "1", "--listen", address] + options
                    let isRefused =
                        isExposed ? options.count < 6 : listen == "unix" && options.contains(tls[0])
                    // An address that is not of this machine cannot be listened on at all.
                    if !isRefused, isExposed, listen != "0.0.0.0" { continue }
                    let up = try workspace.start("operon", arguments)
                    guard !isRefused else {
                        let ended = try await up.end()
                        #expect(ended.end == .exit(2), "\(arguments)")
                        let words = isExposed ? others : "do not apply to unix:"
                        #expect(ended.errors.contains(words), "\(arguments): \(ended.errors)")
                        continue
                    }
                    let open = try await Self.answers(up)
                    let hosts = open.map { $0.prefix { $0 != ":" } }
                    #expect(hosts == (listen == "unix" ? [] : [listen[...]]), "\(arguments)")
                    up.signal(SIGTERM)
                    #expect(try await up.end().end == .exit(0))
                }
            }
        }
    }
}
