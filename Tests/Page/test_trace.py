"""`operon run --trace` in Perfetto: its own page and its own reader, from a copy on this machine."""

import functools
import http.server
import json
import os
import pathlib
import subprocess
import threading

from .case import World
from .case import PageCase

GRAPH = {"operations": {
    "prepare": {"wait": "20ms"},
    "convert": {"forEach": [1, 2, 3, 4, 5, 6], "wait": "50ms", "dependencies": ["prepare"]},
    "flaky": {"run": "test -e mark || { touch mark; exit 3; }", "retry": {"limit": 1}},
    "<b>&\"quoted\"": {"run": "echo 'no \"way\"' >&2; exit 7"},
}}

SLICES = """
    select slice.name as name, category, dur, process.name as process, thread.name as thread,
        thread.is_main_thread as main, extract_arg(slice.arg_set_id, 'args.attempt') as attempt,
        extract_arg(slice.arg_set_id, 'args.error') as error
    from slice join thread_track on track_id = thread_track.id join thread using (utid)
        join process using (upid)
    order by ts
"""
# What the reader did not understand.
PROBLEMS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"

QUERY = """
    const [sql, columns, done] = arguments;
    app.trace.engine.query(sql).then((result) => {
        const rows = [];
        for (const row = result.iter({}); row.valid(); row.next()) {
            rows.push(columns.map((column) => row.get(column)?.toString() ?? null));
        }
        done(rows);
    }, (error) => done(String(error)));
"""


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and keeps quiet."""

    def log_message(self, format, *arguments):  # pylint: disable=redefined-builtin
        pass


class TraceTests(PageCase):
    """The page is Perfetto's: what it misses of the internet is not ours."""

    expected = (r".*",)

    def serve(self, folder):
        """The address of a server for a folder."""
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Files, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}"

    def query(self, sql, *columns):
        """The rows of an answer of Perfetto's reader, as texts."""
        rows = self.page.driver.execute_async_script(QUERY, sql, columns)
        self.assertIsInstance(rows, list, rows)
        return rows

    def test_opens_in_perfetto(self):
        folder = pathlib.Path(os.environ["OPERON_PAGE_PERFETTO"])
        work = self.cluster.scratch / "trace"
        work.mkdir()
        (work / "graph.json").write_text(json.dumps(GRAPH))
        run = subprocess.run(
            [World.cluster.programs / "operon", "run", "graph.json", "--slots", "2",
             "--trace", "trace.json"], check=False, capture_output=True, text=True, cwd=work,
            env=self.cluster.environment(), timeout=120)
        self.assertEqual(run.returncode, 1, run.stderr)

        # Files of the page and the trace have one origin: its policy allows no other.
        trace = folder / "trace.json"
        trace.unlink(missing_ok=True)
        trace.symlink_to(work / "trace.json")
        self.addCleanup(trace.unlink)
        url = self.serve(folder)
        # Before its server ends: what it complains of then would be heard in the next test.
        self.addCleanup(self.page.driver.get, "about:blank")
        self.page.driver.get(f"{url}/#!/?url={url}/trace.json")
        self.page.wait("Perfetto shows the trace", lambda: "/viewer" in self.page.route())
        self.page.wait("Perfetto has read the trace", lambda: self.page.script(
            "return app.trace?.engine !== undefined"))

        self.assertEqual(self.query(PROBLEMS, "name", "value"), [])
        rows = self.query(SLICES, "name", "category", "dur", "process", "thread", "main",
                          "attempt", "error")
        found = sorted((name, category, attempt, error)
                       for name, category, _, _, _, _, attempt, error in rows)
        self.assertEqual(found, sorted(
            [("prepare", "succeeded", "1", None), ("convert", "succeeded", "1", None),
             ("flaky", "failed", "1", "exit code 3"), ("flaky", "succeeded", "2", None),
             ("<b>&\"quoted\"", "failed", "1", "exit code 7")]
            + [(f"convert[{element}]", "succeeded", "1", None) for element in range(1, 7)]))
        self.assertEqual({row[3] for row in rows}, {"local"})
        self.assertEqual({row[4] for row in rows}, {"slot 1", "slot 2"})
        self.assertNotIn("1", {row[5] for row in rows})
        for name, _, length, *_ in rows:
            if name.startswith("convert["):
                self.assertGreaterEqual(int(length), 50_000_000, name)
