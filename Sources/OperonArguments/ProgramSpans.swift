import OperonModel
package import OperonPorts
import OperonRuntime
import OperonTracing

/// The spans of a program, which it sends if the standard environment variables of OpenTelemetry
/// ask for it.
package enum ProgramSpans {
    /// Runs `body`, and sends what it has left.
    ///
    /// - Parameters:
    ///   - service: The name of the program, unless the environment gives another one.
    ///   - warn: Gets sentences for people.
    ///   - body: Gets what takes the spans; `nil`: nobody does.
    package static func recorded<Value>(
        as service: String,
        _ environment: [String: String],
        warn: @escaping @Sendable (String) -> Void,
        _ body: ((any SpanSink)?) async throws -> Value
    ) async throws -> Value {
        guard let exporter = exporter(service, environment, warn) else {
            return try await body(nil)
        }
        let sending = Task(priority: .utility) { await exporter.run() }
        let result: Result<Value, any Error>
        do {
            result = .success(try await body(exporter))
        } catch {
            result = .failure(error)
        }
        // A further signal does not wait for a collector.
        OwnProcess.endAtSignals()
        exporter.finish()
        let farewell = Task {
            // Cancelled: everything was sent.
            do { try await Task.sleep(for: Self.farewell) } catch { return }
            sending.cancel()
        }
        await sending.value
        farewell.cancel()
        return try result.get()
    }

    /// How long a program that ends waits for a collector.
    private static let farewell = Duration.seconds(5)

    private static func exporter(
        _ service: String,
        _ environment: [String: String],
        _ warn: @escaping @Sendable (String) -> Void
    ) -> SpanExporter? {
        let facts: [TraceSpan.Attribute] = [
            .init("service.version", .text(Version.text)),
            .init("service.instance.id", .text("\(Incarnation.drawn())")),
            .init("host.name", .text(OwnProcess.hostName)),
            .init("process.pid", .number(Int64(OwnProcess.id))),
            .init("telemetry.sdk.name", .text("operon")),
            .init("telemetry.sdk.language", .text("swift")),
            .init("telemetry.sdk.version", .text(Version.text)),
        ]
        let settings = TracingSettings.read(environment, service: service, facts: facts, warn: warn)
        guard let settings else { return nil }
        do throws(TracingError) {
            return try SpanExporter(settings, version: Version.text, warn: warn)
        } catch {
            warn(error.message)
            return nil
        }
    }
}
