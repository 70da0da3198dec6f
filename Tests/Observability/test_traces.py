"""Traces: what the programs send to a collector, decoded with the messages of OpenTelemetry."""

import os
import pathlib
import signal
import subprocess
import time
import unittest

from Page.api import wait_for
from Page.cluster import Cluster

from .collector import Collector

TRACE = "0af7651916cd43dd8448eb211c80319c"
SUBMITTER = "b7ad6b7169203331"
SECRET = "canary-8d3f21b07c55"
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

    def cluster(self):
        """A coordinator that sends its spans; so do the workers that the test starts."""
        cluster = Cluster(self.scratch, os.environ["OPERON_BIN"],
                          os.environ["OPERON_TEST_BROKER"],
                          os.environ["OPERON_TEST_WORKER_BROKER"])
        cluster.variables = self.environment()
        self.addCleanup(cluster.stop)
        cluster.start_coordinator()
        return cluster

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
        def run(**variables):
            ended = self.run_graph(DIAMOND, **variables)
            self.assertEqual(ended.returncode, 0, ended.stderr)
        run(TRACEPARENT=f"00-{TRACE}-{SUBMITTER}-00")
        with open(self.scratch + "/top.trace", encoding="utf-8") as file:
            self.assertEqual(file.read(), f"00-{TRACE}-{SUBMITTER}-00\n")
        run(OTEL_TRACES_SAMPLER="always_off", TRACEPARENT=f"00-{TRACE}-{SUBMITTER}-01")
        run(OTEL_SDK_DISABLED="true")
        run(OTEL_TRACES_EXPORTER="none")
        self.assertEqual(self.collector.spans(), [])

    def test_no_value_of_a_secret_is_in_a_trace(self):
        """Neither of an operation that prints it nor of one that fails with it."""
        secrets = pathlib.Path(self.scratch, "secrets")
        secrets.mkdir(mode=0o700)
        (secrets / "db").write_text(SECRET + "\n", encoding="utf-8")
        (secrets / "db").chmod(0o600)
        ended = self.run_graph("""
name: secret
operations:
  good: { run: 'echo "$P"', environment: { P: { secret: db } } }
  bad: { run: 'echo "it is $P" >&2; exit 3', environment: { P: { secret: db } } }
""", "--secrets", str(secrets))
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("it is ***", ended.stderr)
        for name in ("good", "bad"):
            self.one(name, "operon.worker")
        self.assertFalse(any(SECRET.encode() in body for body in self.collector.bodies))

    def test_a_failure_says_why(self):
        """An attempt that fails, is retried and fails again; its graph, and what was skipped."""
        ended = self.run_graph("""
name: broken
operations:
  bad: { run: 'exit 3', retry: { limit: 1, delay: 300ms, jitter: 0 } }
  after: { run: 'true', dependencies: [bad] }
""")
        self.assertEqual(ended.returncode, 1)
        bad = self.one("bad")
        self.assertEqual(bad.raw.status.code, 2)
        self.assertEqual(bad.raw.status.message, "exit code 3")
        self.assertEqual(bad.attributes["operon.attempts"], 2)
        self.assertEqual(self.one("broken").raw.status.message, "1 operation failed")
        self.assertEqual(self.one("broken").attributes["operon.graph.skipped"], 1)
        self.assertNotIn("after", [span.name for span in self.collector.spans()])
        runs = [span for span in self.collector.spans() if span.scope == "operon.worker"]
        self.assertEqual([run.raw.status.message for run in runs], ["exit code 3"] * 2)
        self.assertEqual(sorted(run.attributes["operon.attempt"] for run in runs), [1, 2])
        waits = sorted((span.end - span.start for span in self.collector.spans()
                        if span.name == "wait"))
        self.assertEqual(len(waits), 2)
        self.assertGreaterEqual(waits[1], 300_000_000)

    # A collector in trouble

    SLOW = "name: slow\noperations: { slow: { run: 'sleep 4' } }"
    QUICK = "name: quick\noperations: { quick: { run: 'true' } }"
    # The graph, its submission, and the operation with three parts.
    COUNT = 2 + 4

    def test_a_busy_collector_gets_the_spans_later(self):
        """An answer that is to be repeated loses nothing, at the end of a program, too."""
        for graph in (self.SLOW, self.QUICK):
            self.collector.refusals = [(503, b"", {}), (429, b"", {"Retry-After": "1"})]
            before = len(self.collector.spans())
            ended = self.run_graph(graph)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(self.collector.refusals, [])
            self.assertEqual(len(self.collector.spans()) - before, self.COUNT)
            self.assertNotIn("warning", ended.stderr)

    def test_a_collector_that_asks_for_haste_is_not_flooded(self):
        """`Retry-After: 0` is no reason for a request without a pause."""
        self.collector.refusals = [(503, b"", {"Retry-After": "0"})] * 1_000
        self.run_graph(self.SLOW)
        self.assertLess(len(self.collector.requests), 50)

    def test_the_answer_of_a_proxy_is_bounded(self):
        """A long answer counts by its status: it is neither repeated nor read to its end."""
        self.collector.refusals = [(200, bytes(1_000_000), {})]
        self.run_graph(self.QUICK)
        self.assertEqual(len(self.collector.requests), 1)
        self.collector.refusals = [(404, b"x" * 1_000_000, {})]
        ended = self.run_graph(self.QUICK)
        self.assertEqual(len(self.collector.requests), 2)
        self.assertIn("answered 404\n", ended.stderr)

    def test_a_refusal_is_said_in_the_collectors_words(self):
        """`google.rpc.Status`, as OTLP has it."""
        self.collector.refusals = [(400, b"\x08\x03\x12\x08no quota", {})]
        ended = self.run_graph(self.QUICK)
        self.assertIn(f"warning: {self.COUNT} spans are lost: the collector at "
                      f"{self.collector.url}/v1/traces answered 400: no quota\n", ended.stderr)

    def test_an_answer_that_drips_has_a_limit(self):
        """The timeout is that of the whole answer."""
        self.collector.drip = 0.2
        ended = self.run_graph(self.SLOW, OTEL_EXPORTER_OTLP_TIMEOUT="500")
        self.assertIn("did not answer in time", ended.stderr)
        self.assertGreater(len(self.collector.requests), 2)

    def test_a_collector_that_is_not_there_costs_a_warning(self):
        """The run ends as it would without one, and says once what was lost."""
        self.collector.close()
        start = time.monotonic()
        ended = self.run_graph(self.QUICK,
                               OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20hush")
        self.assertEqual(ended.returncode, 0)
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(ended.stderr.count("warning:"), 1, ended.stderr)
        self.assertIn(f"warning: {self.COUNT} spans are lost: the collector at", ended.stderr)
        self.assertIn("cannot be reached: Connection refused\n", ended.stderr)
        self.assertNotIn("hush", ended.stderr)

    def test_a_full_queue_is_said_once(self):
        """More spans than the collector takes: a warning, and the span of the graph all the same."""
        graph = "name: many\noperations:\n" + "".join(
            f"  o{number}: {{ operation: nothing }}\n" for number in range(2_000))
        ended = self.run_graph(graph, OTEL_BSP_MAX_QUEUE_SIZE="100", OTEL_BSP_SCHEDULE_DELAY="900")
        self.assertEqual(ended.returncode, 0)
        self.assertIn("lost: more are made than the collector takes", ended.stderr)
        self.assertLess(ended.stderr.count("warning:"), 4, ended.stderr)
        self.one("many")

    def test_a_second_signal_does_not_wait_for_a_collector(self):
        """The first one ends the coordinator in good order, the second one at once."""
        self.collector.drip = 5
        program = subprocess.Popen(
            [os.environ["OPERON_BIN"] + "/operon", "up", "--store", self.scratch + "/store.db"],
            env=self.environment(XDG_STATE_HOME=self.scratch), cwd=self.scratch,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.kill)
        for line in program.stderr:
            if "to submit a graph" in line:
                break
        path = self.scratch + "/graph.yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.QUICK)
        subprocess.run([os.environ["OPERON_BIN"] + "/operon", "submit", "--wait", path],
                       env=self.environment(XDG_STATE_HOME=self.scratch), check=True,
                       capture_output=True, timeout=60)
        wait_for("the collector was asked", lambda: self.collector.requests)
        program.send_signal(signal.SIGTERM)
        for line in program.stderr:
            if "stopping" in line:
                break
        start = time.monotonic()
        while program.poll() is None and time.monotonic() < start + 4:
            program.send_signal(signal.SIGTERM)
            time.sleep(0.2)
        self.assertIsNotNone(program.poll(), "it waits for the collector")

    # Retries and restarts

    def test_a_run_that_is_resumed_after_a_crash_is_one_trace(self):
        """The graph has one span, also if an operation was retried before the graph had ended."""
        graph = """
name: resumed
operations:
  bad: { run: 'test -e mended' }
  slow: { run: 'echo running > slow; test -e mended || sleep 60' }
"""
        path = self.scratch + "/graph.yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write(graph)
        run = [os.environ["OPERON_BIN"] + "/operon", "run", path, "--store",
               self.scratch + "/run.db", "--slots", "2"]
        first = subprocess.Popen(run, env=self.environment(), cwd=self.scratch,
                                 stderr=subprocess.DEVNULL)
        wait_for("the first operation is recorded", lambda: [
            span for span in self.collector.spans()
            if span.name == "bad" and span.scope == "operon.coordinator"])
        wait_for("the other one runs", lambda: os.path.exists(self.scratch + "/slow"))
        first.kill()
        first.wait()
        with open(self.scratch + "/mended", "w", encoding="utf-8"):
            pass
        ended = subprocess.run([*run, "--resume"], env=self.environment(), cwd=self.scratch,
                               capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        root = self.one("resumed")
        bad = [span for span in self.collector.spans()
               if span.name == "bad" and span.scope == "operon.coordinator"]
        self.assertEqual([span.attributes["operon.outcome"] for span in bad],
                         ["failed", "succeeded"])
        self.assertEqual(len({span.id for span in bad}), 2)
        self.assertEqual({span.parent for span in bad}, {root.id})
        self.assertEqual({span.trace for span in self.collector.spans()}, {root.trace})

    def test_a_worker_that_comes_back_leaves_one_span(self):
        """Its attempt was taken for lost. What waited before the coordinator started waits, too."""
        cluster = self.cluster()
        cluster.start_worker("worker-a", "--slots", "2")
        graph = cluster.api.post("graphs", {
            "name": "frozen", "queues": {"later": {"isSuspended": True}}, "operations": [
                {"name": "one", "run": cluster.gate("frozen")},
                {"name": "two", "run": "true", "queue": "later"}]})["id"]
        cluster.api.wait_state(graph, "one", "executing")
        cluster.kill_coordinator()
        cluster.start_coordinator()
        cluster.workers["worker-a"].send_signal(signal.SIGSTOP)
        cluster.api.wait_state(graph, "one", "ready")
        cluster.workers["worker-a"].send_signal(signal.SIGCONT)
        cluster.api.wait_state(graph, "one", "executing")
        cluster.open_gate("frozen")
        cluster.api.ask("POST", "queues/later/resume")
        cluster.api.wait_status(graph, "finished")
        wait_for("the graph is recorded",
                 lambda: [one for one in self.collector.spans() if one.name == "frozen"])
        self.one("wait", parent=self.one("two").id)
        wait_for("the worker's spans are there", lambda: len(
            [one for one in self.collector.spans() if one.scope == "operon.worker"]) == 2)
        self.assertEqual([one for one in self.collector.spans() if one.raw.status.code], [])
        self.assertEqual(self.one("one", "operon.worker").parent, self.one("one").id)

    def test_a_lost_worker_leaves_a_span(self):
        """The coordinator says what its worker cannot say any more."""
        cluster = self.cluster()
        cluster.start_worker("worker-a", "--slots", "1")
        graph = cluster.api.submit("dies", [{"name": "one", "run": cluster.gate("dies")}])["id"]
        cluster.api.wait_state(graph, "one", "executing")
        cluster.end(cluster.workers["worker-a"], signal.SIGKILL)
        cluster.start_worker("worker-b", "--slots", "1")
        cluster.open_gate("dies")
        cluster.api.wait_status(graph, "finished")
        wait_for("the graph is recorded",
                 lambda: [one for one in self.collector.spans() if one.name == "dies"])
        whole = [span for span in self.collector.spans()
                 if span.name == "one" and span.links == set() and "operon.outcome"
                 in span.attributes]
        self.assertEqual(len(whole), 1)
        lost = [span for span in self.collector.spans()
                if span.name == "one" and span.raw.status.code == 2]
        self.assertEqual(len(lost), 1, self.collector.spans())
        self.assertEqual(lost[0].parent, whole[0].id)
        self.assertEqual(lost[0].attributes["operon.worker"], "worker-a")
        self.assertEqual(lost[0].attributes["operon.attempt"], 1)

    def test_requests_are_compressed_if_the_environment_says_so(self):
        """gzip, as other exporters of OpenTelemetry compress."""
        graph = "operations: { many: { forEach: 1..300, run: 'true' } }"
        ended = self.run_graph(graph, OTEL_EXPORTER_OTLP_COMPRESSION="gzip")
        self.assertEqual((ended.returncode, ended.stderr.count("warning")), (0, 0), ended.stderr)
        for _, headers in self.collector.requests:
            self.assertEqual(headers["Content-Encoding"], "gzip")
            self.assertEqual(headers["Content-Type"], "application/x-protobuf")
        # The group does nothing, of which a worker makes no span.
        self.assertEqual(len({span.id for span in self.collector.spans()}), 2 + 300 * 4 + 3)
        # The parts of so many spans have much in common.
        sent = sum(int(headers["Content-Length"]) for _, headers in self.collector.requests)
        self.assertLess(sent, 100 * len(self.collector.spans()))

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
        cluster = self.cluster()
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
