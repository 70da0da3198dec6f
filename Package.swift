// swift-tools-version: 6.2
import PackageDescription

/// One list for every target, so that no target is checked less than another.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]

/// Tests call C and the unsafe parts of the library freely; the annotations would only hide them.
let testSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

/// What `--version` says besides the version: scripts that build releases set it to the commit and
/// its date. Everybody else builds without, so that a commit changes no object.
let build: [CSetting] =
    Context.environment["OPERON_BUILD"].map { [.define("OPERON_BUILD", to: "\"\($0)\"")] } ?? []

/// What needs another process, a database, or files of graphs. Without this trait, the product
/// `Operon` needs three packages, and no broker, server, database, TLS or YAML. SwiftPM fetches a
/// package if any target may use it, so every use of the other packages depends on the trait.
extension Target.Dependency {
    static func cluster(_ target: String) -> Self {
        .target(name: target, condition: .when(traits: ["Cluster"]))
    }

    static func cluster(_ product: String, _ package: String) -> Self {
        .product(name: product, package: package, condition: .when(traits: ["Cluster"]))
    }
}

let package = Package(
    name: "operon",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "Operon", targets: ["Operon"]),
        .library(name: "OperonFoundation", targets: ["OperonFoundation"]),
        .library(name: "OperonTesting", targets: ["OperonTesting"]),
        .executable(name: "operon", targets: ["operon"]),
        .executable(name: "operon-worker", targets: ["operon-worker"]),
    ],
    traits: [
        .default(enabledTraits: ["Cluster"]),
        .trait(
            name: "Cluster",
            description: """
                Coordinators, workers, databases, graph files and triggers; without it, operations \
                of one process alone.
                """
        ),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.34.1"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        // Without traits: its streams need all of Foundation.
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0", traits: []),
        .package(
            url: "https://github.com/hummingbird-project/hummingbird",
            from: "2.28.1",
            traits: []
        ),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // C: the broker's codec and what must happen between fork and exec.
        .systemLibrary(
            name: "CRabbitMQ",
            pkgConfig: "librabbitmq",
            providers: [.apt(["librabbitmq-dev"])]
        ),
        // Hashes, keys and seals: the library that librabbitmq links as well.
        .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "COperonSQLite",
            pkgConfig: "sqlite3",
            providers: [.apt(["libsqlite3-dev"])]
        ),
        .systemLibrary(
            name: "COperonYAML",
            pkgConfig: "yaml-0.1",
            providers: [.apt(["libyaml-dev"])]
        ),
        .target(name: "COperonProcess", cSettings: build),
        .target(name: "COperonAPI", exclude: ["openapi.json"]),
        .target(
            name: "COperonPage",
            exclude: [
                "README.md", "files", "generate-types", "page.d.ts", "preact-LICENSE",
                "preact.d.ts",
                "schemas.d.ts", "tsconfig.json",
            ]
        ),

        // Values, decisions, bytes, ports.
        .target(name: "OperonModel", swiftSettings: settings),
        .target(
            name: "OperonSystem",
            dependencies: ["COpenSSL", "OperonModel"],
            swiftSettings: settings
        ),
        .target(
            name: "OperonCore",
            dependencies: [
                "OperonModel",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "OperonWire",
            dependencies: [
                "OperonModel",
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            exclude: ["Protobuf"],
            swiftSettings: settings
        ),
        .target(
            name: "OperonTrust",
            dependencies: [
                "OperonModel", "OperonSystem",
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "OperonPorts",
            dependencies: [
                "OperonModel"
            ],
            swiftSettings: settings
        ),

        // Adapters: they know the ports and the model, never each other.
        .target(
            name: "OperonAMQP",
            dependencies: [
                "CRabbitMQ", "OperonCore", "OperonModel", "OperonPorts", "OperonSystem",
                .cluster("NIOCore", "swift-nio"),
                .cluster("NIOPosix", "swift-nio"),
                .cluster("NIOSSL", "swift-nio-ssl"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "OperonGraphFile",
            dependencies: ["COperonYAML", "OperonModel", "OperonPorts", "OperonSystem"],
            swiftSettings: settings
        ),
        .target(
            name: "OperonTerminal",
            dependencies: ["OperonModel", "OperonSystem"],
            swiftSettings: settings
        ),
        .target(
            name: "OperonReport",
            dependencies: [
                "OperonModel", "OperonSystem", "OperonTerminal",
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "OperonSQLite",
            dependencies: [
                "COperonSQLite", "OperonModel", "OperonPorts", "OperonSystem",
                .cluster("NIOConcurrencyHelpers", "swift-nio"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "OperonHTTP",
            dependencies: [
                "COperonAPI", "COperonPage", "OperonModel", "OperonPorts", "OperonReport",
                "OperonSystem",
                .cluster("AsyncHTTPClient", "async-http-client"),
                .cluster("HTTPTypes", "swift-http-types"),
                .cluster("HummingbirdCore", "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .cluster("NIOCore", "swift-nio"),
                .cluster("NIOHTTP1", "swift-nio"),
                .cluster("NIOHTTPTypes", "swift-nio-extras"),
                .cluster("NIOPosix", "swift-nio"),
                .cluster("NIOSSL", "swift-nio-ssl"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "OperonMetrics",
            dependencies: [
                .cluster("CoreMetrics", "swift-metrics")
            ],
            swiftSettings: settings
        ),

        .systemLibrary(
            name: "CZlib",
            pkgConfig: "zlib",
            providers: [.apt(["zlib1g-dev"])]
        ),
        .target(
            name: "OperonTracing",
            dependencies: [
                "CZlib", "OperonModel", "OperonPorts", "OperonSystem", "OperonWire",
                .cluster("AsyncHTTPClient", "async-http-client"),
                .product(name: "DequeModule", package: "swift-collections"),
                .cluster("NIOCore", "swift-nio"),
                .cluster("NIOHTTP1", "swift-nio"),
                .cluster("NIOPosix", "swift-nio"),
                .cluster("NIOSSL", "swift-nio-ssl"),
            ],
            swiftSettings: settings
        ),

        // The shell around the core.
        .target(
            name: "OperonRuntime",
            dependencies: [
                "COperonProcess", "OperonCore", "OperonModel", "OperonPorts", "OperonSystem",
                "OperonTrust", "OperonWire",
                .cluster("CoreMetrics", "swift-metrics"),
                .product(name: "DequeModule", package: "swift-collections"),
                .cluster("Instrumentation", "swift-distributed-tracing"),
                .product(name: "Logging", package: "swift-log"),
                .cluster("Tracing", "swift-distributed-tracing"),
                .cluster("UnixSignals", "swift-service-lifecycle"),
            ],
            swiftSettings: settings
        ),

        // What users import.
        .target(
            name: "Operon",
            dependencies: [
                "OperonCore", "OperonModel", "OperonPorts", "OperonRuntime", "OperonTrust",
                .cluster("OperonAMQP"), .cluster("OperonGraphFile"), .cluster("OperonHTTP"),
                .cluster("OperonSQLite"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
                .cluster("ServiceLifecycle", "swift-service-lifecycle"),
                .cluster("UnixSignals", "swift-service-lifecycle"),
            ],
            swiftSettings: settings
        ),

        // For programs that use all of Foundation.
        .target(name: "OperonFoundation", dependencies: ["Operon"], swiftSettings: settings),

        // For tests of programs.
        .target(
            name: "OperonTesting",
            dependencies: [
                "Operon", "OperonModel", "OperonRuntime",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),

        // Programs, and what they have in common.
        .target(
            name: "OperonArguments",
            dependencies: [
                "OperonModel", "OperonPorts", "OperonRuntime", "OperonSystem", "OperonTerminal",
                "OperonTracing", "OperonTrust",
                .cluster("ArgumentParser", "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "operon",
            dependencies: [
                "OperonAMQP", "OperonArguments", "OperonCore", "OperonGraphFile", "OperonHTTP",
                "OperonMetrics", "OperonModel", "OperonPorts", "OperonReport", "OperonRuntime",
                "OperonSQLite", "OperonSystem", "OperonTerminal", "OperonTrust", "OperonWire",
                .cluster("ArgumentParser", "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
                .cluster("NIOPosix", "swift-nio"),
                .cluster("UnixSignals", "swift-service-lifecycle"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "operon-worker",
            dependencies: [
                "OperonAMQP", "OperonArguments", "OperonCore", "OperonGraphFile", "OperonModel",
                "OperonPorts", "OperonRuntime", "OperonTerminal", "OperonTrust",
                .cluster("ArgumentParser", "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
                .cluster("UnixSignals", "swift-service-lifecycle"),
            ],
            swiftSettings: settings
        ),

        // The examples that are programs.
        .executableTarget(
            name: "mandelbrot",
            dependencies: [
                "CZlib", "Operon",
                .cluster("ArgumentParser", "swift-argument-parser"),
            ],
            path: "Examples/mandelbrot/Program",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "count-worker",
            dependencies: ["Operon"],
            path: "Examples/countwords/Worker",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "count-words",
            dependencies: ["Operon"],
            path: "Examples/countwords/Submit",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "thumbnails",
            dependencies: [
                "Operon",
                .cluster("ArgumentParser", "swift-argument-parser"),
            ],
            path: "Examples/thumbnails/Program",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "crawler",
            dependencies: [
                "Operon",
                .cluster("ArgumentParser", "swift-argument-parser"),
            ],
            path: "Examples/crawler/Program",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "progress-service",
            dependencies: [
                "Operon",
                .cluster("ArgumentParser", "swift-argument-parser"),
                .cluster("Hummingbird", "hummingbird"),
            ],
            path: "Examples/progress/Program",
            swiftSettings: testSettings
        ),

        // The in-memory world: for our tests and benchmarks.
        .target(
            name: "OperonTestKit",
            dependencies: [
                "OperonCore", "OperonModel", "OperonPorts", "OperonWire",
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        // Faults on the wire and of processes, done to programs as users run them.
        .target(
            name: "OperonFaultKit",
            dependencies: [
                "COperonProcess", "OperonCore", "OperonModel", "OperonTrust", "OperonWire",
                .cluster("NIOCore", "swift-nio"),
                .cluster("NIOPosix", "swift-nio"),
            ],
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "simulate",
            dependencies: [
                "OperonCore", "OperonModel", "OperonTestKit",
                .cluster("ArgumentParser", "swift-argument-parser"),
            ],
            path: "Benchmarks/Simulate",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "simulate-shell",
            dependencies: [
                "OperonCore", "OperonGraphFile", "OperonModel", "OperonPorts", "OperonRuntime",
                "OperonTestKit", "OperonWire",
                .cluster("ArgumentParser", "swift-argument-parser"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Benchmarks/SimulateShell",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "core-benchmark",
            dependencies: [
                "OperonCore", "OperonModel", "OperonTestKit",
                .cluster("ArgumentParser", "swift-argument-parser"),
            ],
            path: "Benchmarks/CoreBenchmark",
            swiftSettings: settings
        ),

        // Benchmarks: programs, so that what is measured is a release build in its own process.
        .executableTarget(
            name: "FloorBenchmark",
            dependencies: [
                "OperonAMQP", "OperonModel", "OperonPorts",
                .cluster("ArgumentParser", "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
                .cluster("NIOPosix", "swift-nio"),
            ],
            path: "Benchmarks/FloorBenchmark",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "store-benchmark",
            dependencies: [
                "OperonModel", "OperonPorts", "OperonSQLite",
                .cluster("ArgumentParser", "swift-argument-parser"),
            ],
            path: "Benchmarks/StoreBenchmark",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "coordinator-benchmark",
            dependencies: [
                "OperonCore", "OperonModel", "OperonPorts", "OperonRuntime", "OperonSQLite",
                "OperonTestKit",
                .cluster("ArgumentParser", "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Benchmarks/CoordinatorBenchmark",
            swiftSettings: settings
        ),

        .executableTarget(
            name: "library-benchmark",
            dependencies: [
                "Operon", .cluster("ArgumentParser", "swift-argument-parser"),
            ],
            path: "Benchmarks/LibraryBenchmark",
            swiftSettings: testSettings
        ),

        // A thousand workers in a process, for scripts/load.
        .executableTarget(
            name: "many-workers",
            dependencies: [
                "OperonAMQP", "OperonCore", "OperonModel", "OperonPorts", "OperonRuntime",
                "OperonTrust",
                .cluster("ArgumentParser", "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Benchmarks/ManyWorkers",
            swiftSettings: testSettings
        ),

        // Tests.
        // A real coordinator, its clients, and workers: real ones, or such that do what a test says.
        .target(
            name: "ClusterKit",
            dependencies: [
                "OperonAMQP", "OperonCore", "OperonFaultKit", "OperonGraphFile", "OperonHTTP",
                "OperonModel", "OperonPorts", "OperonRuntime", "OperonSQLite", "OperonTesting",
                "OperonTrust",
                .product(name: "Logging", package: "swift-log"),
                .cluster("NIOConcurrencyHelpers", "swift-nio"),
            ],
            path: "Tests/ClusterKit",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "test-worker",
            dependencies: ["Operon"],
            path: "Tests/TestWorker",
            swiftSettings: testSettings
        ),
        // Sends whatever its login lets it send, for as long as it is told to.
        .executableTarget(
            name: "hostile",
            dependencies: [
                "OperonFaultKit",
                .cluster("ArgumentParser", "swift-argument-parser"),
            ],
            path: "Tests/Hostile",
            swiftSettings: testSettings
        ),
        // Functions that take any bytes, and the program that lets libFuzzer choose the bytes.
        .target(
            name: "FuzzTargets",
            dependencies: [
                "OperonAMQP", "OperonCore", "OperonGraphFile", "OperonHTTP", "OperonModel",
                "OperonPorts", "OperonSQLite", "OperonTrust", "OperonWire",
                .cluster("HTTPTypes", "swift-http-types"),
                .cluster("HummingbirdCore", "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .cluster("NIOCore", "swift-nio"),
                .cluster("NIOEmbedded", "swift-nio"),
                .cluster("NIOHTTPTypes", "swift-nio-extras"),
            ],
            path: "Tests/FuzzTargets",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "fuzzer",
            dependencies: [
                "FuzzTargets",
                .cluster("NIOCore", "swift-nio"),
                .cluster("NIOPosix", "swift-nio"),
            ],
            path: "Tests/Fuzzer",
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "FuzzTests",
            dependencies: ["FuzzTargets", "OperonModel"],
            exclude: ["Corpora"],
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "test-api-server",
            dependencies: ["ClusterKit", "OperonHTTP", "OperonModel", "OperonPorts"],
            path: "Tests/TestAPIServer",
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "OperonTests",
            dependencies: [
                "ClusterKit", "Operon", "OperonFoundation", "OperonTesting", "OperonCore",
                "OperonFaultKit", "OperonGraphFile", "OperonHTTP", "OperonModel",
                "OperonPorts", "OperonRuntime", "OperonWire", "test-worker",
                .product(name: "Logging", package: "swift-log"),
                .cluster("ServiceLifecycle", "swift-service-lifecycle"),
                .cluster("ServiceLifecycleTestKit", "swift-service-lifecycle"),
            ],
            swiftSettings: testSettings
        ),
        // The rows of the conformance suite: what they run, who runs it, and the rows.
        .target(
            name: "ConformanceKit",
            dependencies: ["Operon"],
            path: "Tests/ConformanceKit",
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "conformance-worker",
            dependencies: ["ConformanceKit", "Operon"],
            path: "Tests/ConformanceWorker",
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "ConformanceTests",
            dependencies: [
                "conformance-worker", "operon", "ConformanceKit", "Operon", "OperonAMQP",
                "OperonCore", "OperonFaultKit", "OperonPorts",
                .product(name: "Logging", package: "swift-log"),
                .cluster("NIOPosix", "swift-nio"),
            ],
            swiftSettings: testSettings
        ),
        // What the documents show, as code.
        .testTarget(
            name: "SnippetTests",
            dependencies: [
                "count-words", "count-worker", "Operon", "OperonFaultKit", "OperonTesting",
                .product(name: "Logging", package: "swift-log"),
                .cluster("ServiceLifecycle", "swift-service-lifecycle"),
                .cluster("UnixSignals", "swift-service-lifecycle"),
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "OperonMetricsTests",
            dependencies: [
                "OperonMetrics", .cluster("CoreMetrics", "swift-metrics"),
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "OperonTracingTests",
            dependencies: [
                "OperonModel", "OperonTracing",
                .cluster("NIOConcurrencyHelpers", "swift-nio"),
                .cluster("NIOCore", "swift-nio"),
                .cluster("NIOHTTP1", "swift-nio"),
                .cluster("NIOPosix", "swift-nio"),
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "OperonModelTests",
            dependencies: ["OperonModel"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "OperonCoreTests",
            dependencies: ["OperonCore", "OperonModel", "OperonTestKit"],
            exclude: ["Fixtures"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "SimulationTests",
            dependencies: [
                "simulate-shell",
                "OperonCore", "OperonFaultKit", "OperonModel", "OperonPorts", "OperonSQLite",
                "OperonTestKit",
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "OperonWireTests",
            dependencies: ["OperonFaultKit", "OperonModel", "OperonWire"],
            resources: [.copy("Corpus")],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "OperonTrustTests",
            dependencies: ["COpenSSL", "OperonModel", "OperonSystem", "OperonTrust"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "TransportTests",
            dependencies: [
                "OperonAMQP", "OperonCore", "OperonModel", "OperonPorts", "OperonRuntime",
                "OperonFaultKit",
                .cluster("NIOCore", "swift-nio"),
                .cluster("NIOPosix", "swift-nio"),
                .cluster("NIOEmbedded", "swift-nio"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "OperonGraphFileTests",
            dependencies: ["OperonGraphFile", "OperonModel", "OperonPorts"],
            resources: [.copy("Fixtures")],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "OperonRuntimeTests",
            dependencies: [
                "ClusterKit", "COperonProcess", "OperonArguments", "OperonCore", "OperonFaultKit",
                "OperonModel", "OperonPorts", "OperonRuntime", "OperonSystem", "OperonTestKit",
                "OperonTesting", "OperonTrust", "OperonWire",
                .cluster("InMemoryTracing", "swift-distributed-tracing"),
                .product(name: "Logging", package: "swift-log"),
                .cluster("NIOConcurrencyHelpers", "swift-nio"),
                .cluster("Tracing", "swift-distributed-tracing"),
            ],
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "store-writer",
            dependencies: ["OperonModel", "OperonPorts", "OperonSQLite", "OperonTestKit"],
            path: "Tests/StoreWriter",
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "StoreTests",
            dependencies: [
                "store-writer", "OperonCore", "OperonFaultKit", "OperonModel", "OperonPorts",
                "OperonRuntime", "OperonSQLite", "OperonTestKit",
            ],
            exclude: ["Golden"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "OperonHTTPTests",
            dependencies: [
                "ClusterKit", "OperonCore", "OperonGraphFile", "OperonHTTP", "OperonModel",
                "OperonPorts", "OperonSystem", "OperonTesting",
                .cluster("AsyncHTTPClient", "async-http-client"),
                .product(name: "Logging", package: "swift-log"),
                .cluster("NIOPosix", "swift-nio"),
                .cluster("NIOConcurrencyHelpers", "swift-nio"),
                .cluster("NIOCore", "swift-nio"),
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "OperonReportTests",
            dependencies: ["OperonModel", "OperonReport", "OperonTerminal"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "OperonTerminalTests",
            dependencies: ["OperonModel", "OperonTerminal"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "ClusterTests",
            dependencies: [
                "operon-worker", "ClusterKit", "OperonCore", "OperonFaultKit", "OperonModel",
                "OperonPorts", "OperonRuntime", "OperonSystem", "OperonTesting", "OperonWire",
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "CommandTests",
            dependencies: [
                "COperonProcess", "CZlib", "mandelbrot", "operon", "operon-worker", "test-worker",
                "ClusterKit", "OperonCore", "OperonFaultKit", "OperonGraphFile", "OperonHTTP",
                "OperonModel", "OperonPorts", "OperonRuntime", "OperonSQLite", "OperonTesting",
                .product(name: "Logging", package: "swift-log"),
            ],
            exclude: ["Golden"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "FaultTests",
            dependencies: [
                "hostile", "operon", "operon-worker", "OperonAMQP", "OperonCore",
                "OperonFaultKit", "OperonGraphFile", "OperonHTTP", "OperonModel", "OperonPorts",
                "OperonRuntime", "OperonSystem", "OperonWire",
                .cluster("AsyncHTTPClient", "async-http-client"),
                .product(name: "Logging", package: "swift-log"),
                .cluster("NIOConcurrencyHelpers", "swift-nio"),
                .cluster("NIOCore", "swift-nio"),
                .cluster("NIOHTTP1", "swift-nio"),
                .cluster("NIOPosix", "swift-nio"),
            ],
            swiftSettings: testSettings
        ),
        .testTarget(name: "TidyTests", swiftSettings: testSettings),
    ]
)
