import OperonModel
import OperonPorts
import Testing

@testable import OperonAMQP

@Suite struct BrokerAddressTests {
    struct Example: CustomStringConvertible {
        let url: String
        var user = "guest"
        var password = "guest"
        var host = "localhost"
        var port = 5672
        var virtualHost = "/"

        var description: String { url }
    }

    @Test(arguments: [
        Example(url: "amqp://"),
        Example(url: "amqp://broker", host: "broker"),
        Example(url: "AMQP://broker:1234", host: "broker", port: 1234),
        Example(url: "amqp://:1234/", port: 1234),
        Example(url: "amqp://broker/", host: "broker"),
        Example(url: "amqp://u@broker/?heartbeat=3", user: "u", password: "", host: "broker"),
        Example(url: "amqp://broker/?vhost=", host: "broker", virtualHost: ""),
        Example(url: "amqp://broker?vhost=a%2Fb", host: "broker", virtualHost: "a/b"),
        Example(url: "amqp://broker/main", host: "broker", virtualHost: "main"),
        Example(url: "amqp://broker/%2F", host: "broker"),
        Example(url: "amqp://broker/%2fa%20b", host: "broker", virtualHost: "/a b"),
        Example(url: "amqp://u:p@broker", user: "u", password: "p", host: "broker"),
        Example(url: "amqp://u@broker", user: "u", password: "", host: "broker"),
        Example(
            url: "amqp://u:p%40%3A%2f@h/v",
            user: "u",
            password: "p@:/",
            host: "h",
            virtualHost: "v"
        ),
        Example(url: "amqp://u:a@b@h", user: "u", password: "a@b", host: "h"),
        Example(url: "amqp://u:a:b@h", user: "u", password: "a:b", host: "h"),
        Example(url: "amqp://[::1]", host: "::1"),
        Example(
            url: "amqp://u:p@[fe80::1]:99/v",
            user: "u",
            password: "p",
            host: "fe80::1",
            port: 99,
            virtualHost: "v"
        ),
        Example(url: "amqp://%c3%a4@h", user: "ä", password: "", host: "h"),
        Example(url: "amqps://h", host: "h", port: 5671),
        Example(url: "amqps://h:1/v?heartbeat=3", host: "h", port: 1, virtualHost: "v"),
    ])
    func `a URL is read as Celery and pika read it`(example: Example) throws {
        let address = try BrokerAddress(url: example.url)

        #expect(address.user == example.user)
        #expect(address.password == example.password)
        #expect(address.host == example.host)
        #expect(address.port == example.port)
        #expect(address.virtualHost == example.virtualHost)
        #expect((address.tls != nil) == example.url.hasPrefix("amqps"))
    }

    @Test(arguments: [
        "", "broker", "http://broker", "amqp:/broker", "amqp://h:0", "amqp://h:65536",
        "amqp://h:x", "amqp://::1", "amqp://[::1", "amqp://[::1]x", "amqp://h/%2",
        "amqp://h/%zz", "amqp://h/%+5", "amqp://%ff@h", "amqp://h/%00", "amqp://h?color=red",
        "amqp://h?cacertfile=x", "amqps://h?certfile=x", "amqp://h?heartbeat=-1",
        "amqp://h/v?vhost=w", "amqp://h/v?vhost=", "amqp://h?heartbeat=soon",
        "amqp://h?auth_mechanism=magic",
        "amqp://u:" + String(repeating: "p", count: 256) + "@h",
    ])
    func `a URL that cannot be meant is refused`(url: String) {
        let error = #expect(throws: PortError.self) { try BrokerAddress(url: url) }

        #expect(error?.code == .invalidAddress)
    }

    @Test func `parameters are read`() throws {
        let address = try BrokerAddress(
            url: "amqps://h/v?cacertfile=%2Fca.pem&certfile=a&keyfile=b&heartbeat=7"
                + "&auth_mechanism=EXTERNAL"
        )

        #expect(
            address.tls
                == BrokerAddress.TLS(
                    authorityFile: "/ca.pem",
                    certificateFile: "a",
                    keyFile: "b"
                )
        )
        #expect(address.heartbeatSeconds == 7)
        #expect(address.usesExternalLogin)
    }

    @Test(arguments: [
        "amqp://me:s3cret@h:1/v", "amqps://me:s3cret@[::1]/", "amqp://me:%733cret@h",
    ])
    func `no way of printing an address shows its password`(url: String) throws {
        let configuration = try AMQPConfiguration(url: url)
        var dumped = ""
        dump(configuration, to: &dumped)

        for text in [
            "\(configuration.address)", String(reflecting: configuration.address),
            "\(configuration)", String(reflecting: configuration), dumped,
        ] {
            #expect(!text.contains("s3cret"))
            #expect(text.contains("me:***@"))
        }
    }

    @Test func `no error about an address shows its password`() {
        for url in ["amqp://me:s3cret@h:x", "amqp://me:s3cret@h?x=y", "ftp://me:s3cret@h"] {
            let error = #expect(throws: PortError.self) { try BrokerAddress(url: url) }
            #expect(error?.description.contains("s3cret") == false)
        }
    }

    @Test(arguments: [
        "amqp://guest:***@localhost:5672/%2F": "amqp://",
        "amqp://guest:***@h:5672/%2F": "amqp://h/",
        "amqp://guest:***@h:5672/?vhost=": "amqp://h/?vhost=",
        "amqps://u:***@[::1]:9/a%20b": "amqps://u:p@[::1]:9/a%20b",
    ])
    func `an address is shown in one form`(shown: String, url: String) throws {
        #expect(try BrokerAddress(url: url).description == shown)
        #expect(try BrokerAddress(url: shown).description == shown)
    }

    @Test(arguments: ["amq.x", String(repeating: "x", count: 129)])
    func `a prefix that the broker would refuse is refused`(prefix: String) {
        #expect(throws: PortError.self) {
            try AMQPConfiguration(url: "amqp://", prefix: prefix)
        }
    }
}

@Suite struct PrefixHolderTests {
    @Test func `who holds a prefix is told and understood`() {
        var holder = PrefixHolder(host: "alpha", processID: 42, since: 1_700_000_000)
        holder.workers = 3
        holder.slots = 24

        #expect(PrefixHolder(answer: holder.answer) == holder)
        #expect(holder.sentence == "alpha, process 42, since 2023-11-14 22:13:20 UTC")
    }

    @Test(arguments: ["", "alpha", "alpha\nx\n1", "alpha\n1", "\n1\n2"])
    func `an answer that makes no sense is none`(text: String) {
        #expect(PrefixHolder(answer: Array(text.utf8)) == nil)
    }

    @Test func `an answer cannot write to a terminal`() {
        let holder = PrefixHolder(answer: Array("al\u{1B}[31mpha\n1\n2".utf8))

        #expect(holder?.host == "al[31mpha")
    }
}

@Suite struct TopologyTests {
    let names = Topology(prefix: "operon.")

    @Test func `a queue's name leads back to its worker`() {
        let worker = WorkerAddress(
            incarnation: .init(rawValue: 0xAB),
            connection: 12
        )

        #expect(names.queue(of: worker) == "operon.worker.00000000000000ab.12")
        #expect(names.worker(queue: names.queue(of: worker)) == worker)
    }

    @Test(arguments: [
        "", "operon.worker.", "operon.worker.ab.1", "operon.worker.00000000000000ab",
        "operon.worker.00000000000000ab.x", "other.worker.00000000000000ab.1",
        "operon.worker.00000000000000ab.1.2",
    ])
    func `another name leads to no worker`(name: String) {
        #expect(names.worker(queue: name) == nil)
    }
}
