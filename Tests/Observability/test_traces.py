"""Traces: what the programs send to a collector, decoded with the messages of OpenTelemetry."""

import os
import subprocess
import time
import unittest

from Page.api import wait_for
from Page.cluster import Cluster

from .collector import Collector

TRACE = "0af7651916cd43dd8448eb211c80319c"
SUBMITTER = "b7ad6b7169203331"
DIAMOND = """
name: diamond
operations:
  top: { run: 'echo "$TRACEPARENT" > top.trace; sleep 0.2' }
  left: { run: 'true', dependencies: [top] }
  right: { run: 'true', dependencies: [top] }
  bottom: { run: 'true', dependencies: [left, right] }
"""


class TraceTests(unittest.TestCase):
    """One collector for each test."""

    def setUp(self):
        self.collector = Collector()
        self.addCleanup(self.collector.close)
        self.scratch = os.environ["OPERON_TEST_SCRATCH"] + "/" + self._testMethodName
        os.mkdir(self.scratch)

    def environment(self, **more):
        """The variables of a program that sends its spans at once."""
        return {"PATH": os.environ["PATH"], "HOME": self.scratch, "LANG": "C.UTF-8",
                "OTEL_EXPORTER_OTLP_ENDPOINT": self.collector.url,
                "OTEL_BSP_SCHEDULE_DELAY": "100", **more}

    def run_graph(self, text, *arguments, **variables):
        """Runs a graph in one process and returns how that ended."""
        path = self.scratch + "/graph.yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return subprocess.run(
            [os.environ["OPERON_BIN"] + "/operon", "run", path, *arguments],
            env=self.environment(**variables), cwd=self.scratch, capture_output=True, text=True,
            timeout=120, check=False)

    def one(self, name, scope="operon.coordinator", parent=None):
        """The one span with this name, this scope, and this parent."""
        found = [span for span in self.collector.spans()
                 if span.name == name and span.scope == scope
                 and parent in (None, span.parent)]
        self.assertEqual(len(found), 1, f"{name}: {found} of {self.collector.spans()}")
        return found[0]

    def check_diamond(self, root):
        """The spans of the graph are complete, and stand where they belong."""
        submission = self.one("submit")
        self.assertEqual(submission.parent, root.id)
        spans = {}
        for name in ("top", "left", "right", "bottom"):
            span = spans[name] = self.one(name)
            self.assertEqual(span.parent, root.id)
            self.assertEqual(span.attributes["operon.outcome"], "succeeded")
            wait = self.one("wait", parent=span.id)
            dispatch = self.one("dispatch", parent=span.id)
            run = self.one(name, "operon.worker", parent=span.id)
            self.assertEqual(run.attributes["operon.kind"], "command")
            self.assertLessEqual(span.start, wait.start)
            self.assertLessEqual(wait.start, wait.end)
            self.assertLessEqual(wait.end, dispatch.end)
            self.assertLessEqual(run.end, span.end + 50_000_000)
            self.assertGreaterEqual(run.start, wait.start - 50_000_000)
        self.assertEqual(spans["top"].links, set())
        self.assertEqual(spans["left"].links, {spans["top"].id})
        self.assertEqual(spans["right"].links, {spans["top"].id})
        self.assertEqual(spans["bottom"].links, {spans["left"].id, spans["right"].id})
        run = self.one("top", "operon.worker")
        self.assertGreaterEqual(run.end - run.start, 200_000_000)
        # Nothing else, and each once.
        spans = self.collector.spans()
        self.assertEqual(len(spans), len({span.id for span in spans}))
        self.assertEqual({span.trace for span in spans}, {root.trace})
        self.assertEqual(len(spans), 2 + 4 * 4)
        return run

    def test_a_run_is_a_trace_of_its_own(self):
        """A run without a submitter's trace begins one; its processes continue it."""
        ended = self.run_graph(DIAMOND)
        self.assertEqual((ended.returncode, "warning" in ended.stderr), (0, False), ended.stderr)
        root = self.one("diamond")
        self.assertEqual(root.parent, "")
        run = self.check_diamond(root)
        with open(self.scratch + "/top.trace", encoding="utf-8") as file:
            self.assertEqual(file.read(), f"00-{root.trace}-{run.id}-01\n")
        self.assertEqual(root.resource["service.name"], "operon")
        self.assertEqual(root.attributes["operon.graph.succeeded"], 4)
        path, headers = self.collector.requests[0]
        self.assertEqual(path, "/v1/traces")
        self.assertEqual(headers["Content-Type"], "application/x-protobuf")

    def test_a_submitters_trace_goes_on(self):
        """The graph is a part of the trace that the environment names."""
        ended = self.run_graph(DIAMOND, TRACEPARENT=f"00-{TRACE}-{SUBMITTER}-01")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        root = self.one("diamond")
        self.assertEqual((root.trace, root.parent), (TRACE, SUBMITTER))
        self.check_diamond(root)

    def test_what_a_sampler_leaves_out_is_not_recorded(self):
        """Neither the submitter's trace nor a sampler that says no leaves spans."""
        self.run_graph(DIAMOND, TRACEPARENT=f"00-{TRACE}-{SUBMITTER}-00")
        with open(self.scratch + "/top.trace", encoding="utf-8") as file:
            self.assertEqual(file.read(), f"00-{TRACE}-{SUBMITTER}-00\n")
        self.run_graph(DIAMOND, OTEL_TRACES_SAMPLER="always_off",
                       TRACEPARENT=f"00-{TRACE}-{SUBMITTER}-01")
        self.run_graph(DIAMOND, OTEL_SDK_DISABLED="true")
        self.run_graph(DIAMOND, OTEL_TRACES_EXPORTER="none")
        self.assertEqual(self.collector.spans(), [])

    def test_a_failure_says_why(self):
        """An attempt that fails, is retried and fails again; its graph, and what was skipped."""
        ended = self.run_graph("""
name: broken
operations:
  bad: { run: 'exit 3', retry: { limit: 1, delay: 300ms } }
  after: { run: 'true', dependencies: [bad] }
""")
        self.assertEqual(ended.returncode, 1)
        bad = self.one("bad")
        self.assertEqual(bad.raw.status.code, 2)
        self.assertEqual(bad.raw.status.message, "exit code 3")
        self.assertEqual(bad.attributes["operon.attempts"], 2)
        self.assertEqual(self.one("broken").raw.status.message, "1 operation failed")
        runs = [span for span in self.collector.spans() if span.scope == "operon.worker"]
        self.assertEqual([run.raw.status.message for run in runs], ["exit code 3"] * 2)
        self.assertEqual(sorted(run.attributes["operon.attempt"] for run in runs), [1, 2])
        waits = sorted((span.end - span.start for span in self.collector.spans()
                        if span.name == "wait"))
        self.assertEqual(len(waits), 2)
        self.assertGreaterEqual(waits[1], 290_000_000)

    def test_a_collector_that_is_busy_gets_the_spans_later(self):
        """An answer that is to be repeated loses nothing."""
        self.collector.refusals = [503, 429]
        ended = self.run_graph("operations: { slow: { run: 'sleep 4' } }")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(self.collector.refusals, [])
        self.assertEqual(len(self.collector.spans()), 2 + 4)
        self.assertNotIn("warning", ended.stderr)

    def test_a_collector_that_is_not_there_costs_a_warning(self):
        """The run ends as it would without one, and says what was lost."""
        self.collector.close()
        start = time.monotonic()
        ended = self.run_graph("operations: { a: { run: 'true' } }",
                               OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20hush")
        self.assertEqual(ended.returncode, 0)
        self.assertLess(time.monotonic() - start, 20)
        self.assertIn("warning: spans are lost: the collector", ended.stderr)
        self.assertIn("6 spans could not be sent", ended.stderr)
        self.assertNotIn("hush", ended.stderr)

    def test_headers_and_resource_are_those_of_the_environment(self):
        """The variables of OpenTelemetry, and a warning for one that cannot be used."""
        ended = self.run_graph(
            "operations: { a: { run: 'true' } }",
            OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20hush,x-team=build",
            OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test,service.name=other",
            OTEL_SERVICE_NAME="nightly", OTEL_BSP_MAX_EXPORT_BATCH_SIZE="two")
        _, headers = self.collector.requests[0]
        self.assertEqual((headers["authorization"], headers["x-team"]), ("Bearer hush", "build"))
        resource = self.collector.spans()[0].resource
        self.assertEqual(resource["service.name"], "nightly")
        self.assertEqual(resource["deployment.environment.name"], "test")
        self.assertIn("warning: OTEL_BSP_MAX_EXPORT_BATCH_SIZE: “two”", ended.stderr)

    def test_coordinator_and_worker_are_parts_of_one_trace(self):
        """On a cluster, each program sends its own spans; a new coordinator goes on."""
        cluster = Cluster(self.scratch, os.environ["OPERON_BIN"],
                          os.environ["OPERON_TEST_BROKER"],
                          os.environ["OPERON_TEST_WORKER_BROKER"])
        cluster.variables = self.environment()
        self.addCleanup(cluster.stop)
        cluster.start_coordinator()
        cluster.start_worker("worker-a", "--slots", "4")
        path = self.scratch + "/graph.yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write(DIAMOND.replace("sleep 0.2", cluster.gate("top")))
        cluster.run("submit", path)
        cluster.api.wait_state("diamond", "top", "executing")
        wait_for("the submission is recorded",
                 lambda: [one for one in self.collector.spans() if one.name == "submit"])
        cluster.kill_coordinator()
        cluster.start_coordinator()
        cluster.open_gate("top")
        cluster.api.wait_status("diamond", "finished")
        wait_for("the graph is recorded",
                 lambda: [one for one in self.collector.spans() if one.name == "diamond"])
        root = self.one("diamond")
        self.assertEqual(self.one("submit").parent, root.id)
        bottom = self.one("bottom")
        self.assertEqual(bottom.parent, root.id)
        self.assertEqual(bottom.links, {self.one("left").id, self.one("right").id})
        self.assertEqual(bottom.resource["service.name"], "operon-coordinator")
        wait_for("the worker's spans are there", lambda: len(
            [one for one in self.collector.spans() if one.scope == "operon.worker"]) == 4)
        run = self.one("bottom", "operon.worker", parent=bottom.id)
        self.assertEqual(run.resource["service.name"], "operon-worker")
        # The first coordinator granted it, and this one heard of its end.
        top = self.one("top", "operon.worker")
        self.assertEqual(self.one("left").links, {top.parent})
        self.assertEqual(self.one("top").id, top.parent)
        self.assertEqual({span.trace for span in self.collector.spans()}, {root.trace})
        dispatch = self.one("dispatch", parent=bottom.id)
        self.assertEqual(dispatch.attributes["operon.worker"], "worker-a")
