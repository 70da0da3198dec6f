import NIOConcurrencyHelpers
import OperonModel
import OperonTracing
import Testing

@Suite struct TracingSettingsTests {
    private static func read(
        _ environment: [String: String],
        facts: [TraceSpan.Attribute] = []
    ) -> (settings: TracingSettings?, warnings: [String]) {
        let warnings = NIOLockedValueBox<[String]>([])
        let settings = TracingSettings.read(environment, service: "operon", facts: facts) { text in
            warnings.withLockedValue { $0.append(text) }
        }
        return (settings, warnings.withLockedValue { $0 })
    }

    private static let base = "OTEL_EXPORTER_OTLP_ENDPOINT"
    private static let named = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"

    @Test(arguments: [
        ([base: "http://c:4318"], "http://c:4318/v1/traces"),
        ([base: "https://c/otel/"], "https://c/otel/v1/traces"),
        ([base: "http://c", named: "http://t/in"], "http://t/in"),
        (["OTEL_TRACES_EXPORTER": "otlp"], "http://localhost:4318/v1/traces"),
        ([base: "http://c", "OTEL_SDK_DISABLED": "false"], "http://c/v1/traces"),
        ([base: "HTTP://[::1]:4318/a?key=x"], "http://[::1]:4318/a/v1/traces?key=x"),
        ([named: "http://c:1/?key=x#part"], "http://c:1/?key=x"),
        ([base: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"], "http://c/v1/traces"),
    ])
    func `spans go where the environment says`(environment: [String: String], endpoint: String) {
        let (settings, warnings) = Self.read(environment)
        #expect(settings?.address == endpoint)
        #expect(warnings.isEmpty)
    }

    @Test(
        arguments: [
            ([:], nil),
            ([base: ""], nil),
            ([base: "http://c", "OTEL_SDK_DISABLED": "True"], nil),
            ([base: "http://c", "OTEL_TRACES_EXPORTER": "none"], nil),
            (
                [base: "http://c", "OTEL_TRACES_EXPORTER": "jaeger"],
                "OTEL_TRACES_EXPORTER: “jaeger” is neither “otlp” nor “none”"
            ),
            ([base: "http://c:70000"], "\(base) has no port from 1 to 65535: no spans are sent"),
            ([base: "http://[::1]:0"], "\(base) has no port from 1 to 65535: no spans are sent"),
            ([base: "http://[::1]x"], "\(base) has no port from 1 to 65535: no spans are sent"),
            ([base: "http://"], "\(base) names no host: no spans are sent"),
            ([base: "https:///x"], "\(base) names no host: no spans are sent"),
            ([base: "http://:80"], "\(base) names no host: no spans are sent"),
            ([base: "http://[]"], "\(base) names no host: no spans are sent"),
            (
                [base: "http://user:pa/ss@c"],
                "\(base) contains a login, which OTEL_EXPORTER_OTLP_HEADERS is for: "
                    + "no spans are sent"
            ),
            ([base: "c:4317"], "\(base) is no URL with http or https: no spans are sent"),
            ([named: "unix:/x"], "\(named) is no URL with http or https: no spans are sent"),
            (
                [base: "http://c", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"],
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: only “http/protobuf” is known, not “grpc”: "
                    + "no spans are sent"
            ),
        ] as [([String: String], String?)]
    )
    func `spans are not sent`(environment: [String: String], warning: String?) {
        let (settings, warnings) = Self.read(environment)
        #expect(settings == nil)
        #expect(warnings == (warning.map { [$0] } ?? []))
    }

    @Test func `values are those of the environment`() throws {
        let (read, warnings) = Self.read(
            [
                Self.base: "https://c",
                "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, x = y=z ",
                "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
                "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "1500",
                "OTEL_EXPORTER_OTLP_CERTIFICATE": "/ca.pem",
                "OTEL_BSP_SCHEDULE_DELAY": "50",
                "OTEL_BSP_EXPORT_TIMEOUT": "7000",
                "OTEL_BSP_MAX_QUEUE_SIZE": "100",
                "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "200",
                "OTEL_SPAN_LINK_COUNT_LIMIT": "3",
                "OTEL_RESOURCE_ATTRIBUTES": "host.name=other,team=build%2Cinfra",
            ],
            facts: [.init("host.name", .text("here")), .init("process.pid", .number(7))]
        )
        let settings = try #require(read)
        #expect(warnings.isEmpty)
        #expect(settings.headers.map(\.name) == ["api-key", "x"])
        #expect(settings.headers.map(\.value) == ["a b", "y=z"])
        #expect(settings.timeout == .milliseconds(1_500))
        #expect(settings.certificateAuthority == "/ca.pem")
        #expect(settings.pause == .milliseconds(50))
        #expect(settings.patience == .seconds(7))
        #expect(settings.queueMax == 100)
        #expect(settings.batchMax == 100)
        #expect(settings.linksMax == 3)
        #expect(
            settings.resource == [
                .init("service.name", .text("operon")), .init("process.pid", .number(7)),
                .init("host.name", .text("other")), .init("team", .text("build,infra")),
            ]
        )
    }

    @Test func `nothing that prints the settings shows a header`() throws {
        let (settings, _) = Self.read([
            Self.base: "https://c", "OTEL_EXPORTER_OTLP_HEADERS": "api-key=s3cret",
        ])
        let read = try #require(settings)
        #expect(read.headers.first?.value == "s3cret")
        var dumped = ""
        dump(read, to: &dumped)
        for text in ["\(read)", String(reflecting: read), dumped] {
            #expect(text.contains("***") && !text.contains("s3cret"), "\(text)")
        }
    }

    @Test func `a value that cannot be used is told without being shown`() throws {
        let (settings, warnings) = Self.read([
            Self.base: "https://c", "OTEL_EXPORTER_OTLP_HEADERS": "secret,a=b%0Ac,d=e",
        ])
        #expect(settings?.headers.map(\.name) == ["d"])
        #expect(
            warnings == [
                "OTEL_EXPORTER_OTLP_HEADERS: an entry is not NAME=VALUE, and is left out",
                "OTEL_EXPORTER_OTLP_HEADERS: an entry cannot be sent as a header, and is left out",
            ]
        )
    }

    @Test(arguments: [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0", "“0” is not a number from 1 to 10000000; 65536 is used"),
        ("OTEL_BSP_SCHEDULE_DELAY", "1s", "“1s” is not a number from 0 to 86400000; 5000 is used"),
        (
            "OTEL_TRACES_SAMPLER", "sometimes",
            "“sometimes” is none of always_on, parentbased_always_on, always_off, "
                + "parentbased_always_off, traceidratio, parentbased_traceidratio; "
                + "parentbased_always_on is used"
        ),
        ("OTEL_SDK_DISABLED", "yes", "“yes” is neither “true” nor “false”"),
        (
            "OTEL_EXPORTER_OTLP_COMPRESSION", "zstd",
            "“zstd” is neither “gzip” nor “none”; none is used"
        ),
    ])
    func `a wrong value gives a warning`(name: String, value: String, warning: String) {
        let (settings, warnings) = Self.read([Self.base: "http://c", name: value])
        #expect(settings != nil)
        #expect(warnings == ["\(name): \(warning)"])
    }

    // MARK: - Samplers

    private static func sampler(_ name: String, _ ratio: String? = nil) throws -> TraceSampler {
        var environment = [base: "http://c", "OTEL_TRACES_SAMPLER": name]
        environment["OTEL_TRACES_SAMPLER_ARG"] = ratio
        let (settings, warnings) = read(environment)
        #expect(warnings.isEmpty)
        return try #require(settings).sampler
    }

    private static func context(_ low: UInt64, isSampled: Bool) throws -> TraceContext {
        TraceContext(
            trace: try #require(TraceContext.TraceID(high: 1, low: low)),
            span: try #require(TraceContext.SpanID(rawValue: 1)),
            flags: isSampled ? 1 : 0
        )
    }

    @Test(arguments: [
        ("always_on", true, true, true), ("always_off", false, false, false),
        ("parentbased_always_on", true, true, false),
        ("parentbased_always_off", false, true, false),
    ])
    func `a sampler decides`(name: String, alone: Bool, sampled: Bool, unsampled: Bool) throws {
        let sampler = try Self.sampler(name)
        let with = try Self.context(5, isSampled: true)
        let without = try Self.context(5, isSampled: false)
        #expect(sampler.isSampled(with.trace, parent: nil) == alone)
        #expect(sampler.isSampled(with.trace, parent: with) == sampled)
        #expect(sampler.isSampled(with.trace, parent: without) == unsampled)
    }

    @Test(arguments: [("0", 0...0), ("0.25", 2_300...2_700), ("1", 10_000...10_000)])
    func `a ratio is kept`(ratio: String, range: ClosedRange<Int>) throws {
        let sampler = try Self.sampler("traceidratio", ratio)
        var random = SystemRandomNumberGenerator()
        let count = (0..<10_000).count { _ in
            sampler.isSampled(.random(using: &random), parent: nil)
        }
        #expect(range.contains(count))
    }

    @Test func `a ratio beyond its bounds gives a warning`() {
        let (_, warnings) = Self.read([
            Self.base: "http://c", "OTEL_TRACES_SAMPLER": "traceidratio",
            "OTEL_TRACES_SAMPLER_ARG": "1.5",
        ])
        #expect(
            warnings == ["OTEL_TRACES_SAMPLER_ARG: “1.5” is not a number from 0 to 1; 1 is used"]
        )
    }
}
