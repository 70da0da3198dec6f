package import OperonModel

/// What the standard environment variables of OpenTelemetry say about traces
/// (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ and
/// https://opentelemetry.io/docs/specs/otel/protocol/exporter/).
///
/// Other programs on the machine may share these variables. As OpenTelemetry asks for, a value that
/// cannot be used gives a warning, and no program ends because of it.
package struct TracingSettings: Sendable {
    let endpoint: CollectorURL
    /// Headers of each request, among them what shows the collector who we are.
    @Secret package var headers: [(name: String, value: String)] = []
    /// How long one request may take.
    package var timeout = Duration.seconds(10)
    /// A PEM file with CA certificates; `nil`: those of the system.
    package var certificateAuthority: String?
    /// PEM files with the certificate and the key of this program; `nil`: it shows none.
    package var clientCertificate: String?
    package var clientKey: String?
    /// How long spans wait until they are sent together.
    package var pause = Duration.seconds(5)
    /// How long sending one batch of spans may take, retries included.
    package var patience = Duration.seconds(30)
    /// Whether requests are compressed with gzip.
    package var compresses = false
    /// The most spans that wait. OpenTelemetry's default is 2,048, which the operations of a
    /// tenth of a second can exceed.
    package var queueMax = 65_536
    /// The most spans in one request.
    package var batchMax = 512
    package var linksMax = 128
    package var sampler = TraceSampler.default
    /// The attributes of whoever sends the spans.
    package var resource: [TraceSpan.Attribute] = []

    static let queueLimit = 10_000_000
    static let path = "v1/traces"

    init(endpoint: CollectorURL) { self.endpoint = endpoint }

    /// The address to which requests are sent.
    package var address: String { endpoint.text }

    /// - Parameters:
    ///   - service: The name of this program, unless the environment gives another one.
    ///   - facts: Attributes of this process, which the environment may replace.
    ///   - warn: Gets a sentence for each value that cannot be used.
    /// - Returns: `nil`: spans are not sent. They are sent if a variable gives an endpoint, or
    ///   `OTEL_TRACES_EXPORTER` is `otlp`.
    package static func read(
        _ environment: [String: String],
        service: String,
        facts: [TraceSpan.Attribute],
        warn: (String) -> Void
    ) -> TracingSettings? {
        withoutActuallyEscaping(warn) { warn in
            TracingVariables(environment, warn).settings(service: service, facts: facts)
        }
    }
}

/// Reads the variables.
private struct TracingVariables {
    private let environment: [String: String]
    private let warn: (String) -> Void

    init(_ environment: [String: String], _ warn: @escaping (String) -> Void) {
        self.environment = environment
        self.warn = warn
    }

    func settings(service: String, facts: [TraceSpan.Attribute]) -> TracingSettings? {
        guard let endpoint = endpoint() else { return nil }
        var settings = TracingSettings(endpoint: endpoint)
        settings.headers = headers(exporter("HEADERS"))
        settings.certificateAuthority = exporter("CERTIFICATE").value
        settings.clientCertificate = exporter("CLIENT_CERTIFICATE").value
        settings.clientKey = exporter("CLIENT_KEY").value
        settings.timeout = milliseconds(exporter("TIMEOUT"), settings.timeout)
        settings.pause = milliseconds(
            variable("OTEL_BSP_SCHEDULE_DELAY"),
            settings.pause,
            from: 0
        )
        settings.patience = milliseconds(variable("OTEL_BSP_EXPORT_TIMEOUT"), settings.patience)
        settings.queueMax = number(
            variable("OTEL_BSP_MAX_QUEUE_SIZE"),
            1...TracingSettings.queueLimit,
            settings.queueMax
        )
        settings.batchMax = min(
            settings.queueMax,
            number(
                variable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"),
                1...TracingSettings.queueLimit,
                settings.batchMax
            )
        )
        settings.linksMax = number(
            variable("OTEL_SPAN_LINK_COUNT_LIMIT"),
            0...TracingSettings.queueLimit,
            settings.linksMax
        )
        settings.sampler = sampler()
        settings.compresses = compresses()
        settings.resource = resource(service, facts)
        return settings
    }

    private func compresses() -> Bool {
        let compression = exporter("COMPRESSION")
        switch compression.value {
        case nil, "none": return false
        case "gzip": return true
        case let value?:
            warn("\(compression.name): “\(value)” is neither “gzip” nor “none”; none is used")
            return false
        }
    }

    // MARK: - Whether and where

    /// Where to send spans; `nil`: nowhere.
    private func endpoint() -> CollectorURL? {
        if let disabled = variable("OTEL_SDK_DISABLED").value {
            switch disabled.lowercased() {
            case "true": return nil
            case "false": break
            default: warn("OTEL_SDK_DISABLED: “\(disabled)” is neither “true” nor “false”")
            }
        }
        guard let isAsked = isExporterAsked() else { return nil }
        let transport = exporter("PROTOCOL")
        let own = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        let base = variable("OTEL_EXPORTER_OTLP_ENDPOINT")
        let name = own.value == nil ? base.name : own.name
        let standard = isAsked ? "http://localhost:4318" : nil
        guard let text = own.value ?? base.value ?? standard else { return nil }
        if let value = transport.value, value != "http/protobuf" {
            let known = "only “http/protobuf” is known, not “\(value)”"
            warn("\(transport.name): \(known): no spans are sent")
            return nil
        }
        do throws(CollectorURL.Problem) {
            let url = try CollectorURL(text)
            return own.value == nil ? url.appending(TracingSettings.path) : url
        } catch {
            // Not the URL itself, which may contain a secret.
            warn("\(name) \(error.words): no spans are sent")
            return nil
        }
    }

    /// Whether `OTEL_TRACES_EXPORTER`, a list, names OTLP; `nil`: spans are not to be sent.
    private func isExporterAsked() -> Bool? {
        guard let value = variable("OTEL_TRACES_EXPORTER").value else { return false }
        let names = value.split(separator: ",").map { String($0.trimmed) }
        let unknown = names.first { $0 != "otlp" && $0 != "none" }
        if let unknown {
            warn("OTEL_TRACES_EXPORTER: “\(unknown)” is neither “otlp” nor “none”")
        }
        return names.contains("otlp") ? true : nil
    }

    private func sampler() -> TraceSampler {
        guard let name = variable("OTEL_TRACES_SAMPLER").value else { return .default }
        let argument = variable("OTEL_TRACES_SAMPLER_ARG")
        var ratio = 1.0
        if name.hasSuffix("traceidratio"), let text = argument.value {
            if let value = Double(text), (0...1).contains(value) {
                ratio = value
            } else {
                warn("\(argument.name): “\(text)” is not a number from 0 to 1; 1 is used")
            }
        }
        if let sampler = TraceSampler(name: name, ratio: ratio) { return sampler }
        let known = TraceSampler.names.joined(separator: ", ")
        let used = TraceSampler.defaultName
        warn("OTEL_TRACES_SAMPLER: “\(name)” is none of \(known); \(used) is used")
        return .default
    }

    /// Earlier values give way to later ones: what the program knows, the list of attributes, and
    /// the variable for the name of the service.
    private func resource(_ service: String, _ facts: [TraceSpan.Attribute]) -> [TraceSpan
        .Attribute]
    {
        let name = variable("OTEL_SERVICE_NAME").value
        var all = [TraceSpan.Attribute("service.name", .text(service))] + facts
        for (key, value) in list(variable("OTEL_RESOURCE_ATTRIBUTES")) {
            all.removeAll { $0.name == key }
            all.append(.init(key, .text(value)))
        }
        if let name {
            all.removeAll { $0.name == "service.name" }
            all.insert(.init("service.name", .text(name)), at: 0)
        }
        return all
    }

    // MARK: - Values

    /// What HTTP takes (RFC 9110, 5.1 and 5.5).
    private func headers(_ variable: Variable) -> [(name: String, value: String)] {
        list(variable).filter { name, value in
            let isName = name.utf8.allSatisfy {
                $0.isASCIILetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains($0)
            }
            if isName, value.utf8.allSatisfy({ (32...126).contains($0) }) { return true }
            warn("\(variable.name): an entry cannot be sent as a header, and is left out")
            return false
        }
    }

    private struct Variable {
        let name: String
        /// `nil`: it is not set, or empty, which means the same.
        let value: String?
    }

    private func variable(_ name: String) -> Variable {
        Variable(name: name, value: environment[name].flatMap { $0.isEmpty ? nil : $0 })
    }

    /// The variable for traces, else that for all signals.
    private func exporter(_ name: String) -> Variable {
        let ofTraces = variable("OTEL_EXPORTER_OTLP_TRACES_" + name)
        return ofTraces.value != nil ? ofTraces : variable("OTEL_EXPORTER_OTLP_" + name)
    }

    private func number(_ variable: Variable, _ range: ClosedRange<Int>, _ standard: Int) -> Int {
        guard let text = variable.value else { return standard }
        if let value = Int(text), range.contains(value) { return value }
        warn(
            "\(variable.name): “\(text)” is not a number from \(range.lowerBound) to "
                + "\(range.upperBound); \(standard) is used"
        )
        return standard
    }

    private func milliseconds(
        _ variable: Variable,
        _ standard: Duration,
        from least: Int = 1
    ) -> Duration {
        let usual = Int(standard.nanoseconds / 1_000_000)
        return .milliseconds(number(variable, least...Self.millisecondsMax, usual))
    }

    /// A day.
    private static let millisecondsMax = 86_400_000

    /// `name=value` pairs with commas between them, percent-encoded as in W3C's baggage.
    private func list(_ variable: Variable) -> [(name: String, value: String)] {
        guard let text = variable.value else { return [] }
        return text.split(separator: ",").compactMap { part in
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(pair[0].trimmed)
            guard pair.count == 2, !name.isEmpty, let value = PercentText.decode(pair[1].trimmed)
            else {
                // The value may be a secret.
                warn("\(variable.name): an entry is not NAME=VALUE, and is left out")
                return nil
            }
            return (name, value)
        }
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var text = self
        while text.first == " " { text.removeFirst() }
        while text.last == " " { text.removeLast() }
        return text
    }
}
