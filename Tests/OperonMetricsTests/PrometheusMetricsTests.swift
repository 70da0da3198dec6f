import CoreMetrics
import OperonMetrics
import Testing

@Suite struct PrometheusMetricsTests {
    @Test func `counters and gauges are written with their help, sorted`() {
        let metrics = PrometheusMetrics(help: ["b_total": "What \\ was\ncounted."])
        let counter = Counter(label: "b_total", dimensions: [("end", "lost")], factory: metrics)
        counter.increment(by: 2)
        Counter(label: "b_total", dimensions: [("end", "failed")], factory: metrics).increment()
        Meter(label: "a", factory: metrics).set(0.5)

        #expect(
            metrics.text == """
                # TYPE a gauge
                a 0.5
                # HELP b_total What \\\\ was\\ncounted.
                # TYPE b_total counter
                b_total{end="failed"} 1
                b_total{end="lost"} 2

                """
        )
    }

    @Test func `one label and the same dimensions are one value, in whatever order`() {
        let metrics = PrometheusMetrics()
        let one = Counter(label: "n", dimensions: [("a", "1"), ("b", "2")], factory: metrics)
        let other = Counter(label: "n", dimensions: [("b", "2"), ("a", "1")], factory: metrics)
        one.increment()
        other.increment()

        #expect(metrics.text == "# TYPE n counter\nn{a=\"1\",b=\"2\"} 2\n")
    }

    @Test func `values of dimensions are escaped`() {
        let metrics = PrometheusMetrics()
        Meter(label: "q", dimensions: [("queue", "a\"b\\c\nd")], factory: metrics).set(1)

        #expect(metrics.text == "# TYPE q gauge\nq{queue=\"a\\\"b\\\\c\\nd\"} 1\n")
    }

    @Test func `timers are histograms in seconds, whose buckets add up`() {
        let metrics = PrometheusMetrics()
        let timer = CoreMetrics.Timer(label: "t_seconds", factory: metrics)
        timer.recordNanoseconds(100_000)
        timer.recordNanoseconds(2_000_000_000)
        timer.recordNanoseconds(7_200_000_000_000)

        let lines = metrics.text.split(separator: "\n").map(String.init)
        #expect(lines.first == "# TYPE t_seconds histogram")
        #expect(lines.contains("t_seconds_bucket{le=\"0.0001\"} 1"))
        #expect(lines.contains("t_seconds_bucket{le=\"1\"} 1"))
        #expect(lines.contains("t_seconds_bucket{le=\"5\"} 2"))
        #expect(lines.contains("t_seconds_bucket{le=\"3600\"} 2"))
        #expect(lines.contains("t_seconds_bucket{le=\"+Inf\"} 3"))
        #expect(lines.contains("t_seconds_sum 7202.0001"))
        #expect(lines.contains("t_seconds_count 3"))
        #expect(lines.count == 1 + PrometheusMetrics.bounds.count + 1 + 2)
    }

    @Test func `a label stays of its type`() {
        let metrics = PrometheusMetrics()
        Counter(label: "x", factory: metrics).increment()
        Meter(label: "x", factory: metrics).set(5)

        #expect(metrics.text == "# TYPE x counter\nx 1\n")
    }

    /// With a copy of the family for each new series this takes hours.
    @Test(.timeLimit(.minutes(5)))
    func `a family has a bound, and what comes beyond it is counted and not written`() throws {
        let metrics = PrometheusMetrics()
        for number in 0..<200_000 {
            let dimensions = [("queue", "q\(number)")]
            let meter = Meter(label: "operon_x", dimensions: dimensions, factory: metrics)
            meter.set(number)
        }
        #expect(metrics.text.split(separator: "\n").count == 1 + PrometheusMetrics.seriesMax)
        #expect(metrics.text.contains("operon_x{queue=\"q0\"} 0\n"))
    }

    @Test func `values that are only known when somebody asks are kept by nobody`() {
        let metrics = PrometheusMetrics(help: ["queued": "What waits."])
        Meter(label: "other", factory: metrics).set(1)
        let gauges = PrometheusMetrics.Gauges(
            label: "queued",
            values: [([("queue", "b")], 2), ([("queue", "a")], 1)]
        )

        #expect(
            metrics.text(with: [gauges]) == """
                # TYPE other gauge
                other 1
                # HELP queued What waits.
                # TYPE queued gauge
                queued{queue="a"} 1
                queued{queue="b"} 2

                """
        )
        #expect(metrics.text == "# TYPE other gauge\nother 1\n")
    }
}
