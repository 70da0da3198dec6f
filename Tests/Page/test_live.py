"""The page shows what changes while it is open, also after the coordinator died."""

from .browser import hook
from .case import PageCase
from .cluster import TOKENS
from .scene import Scene


class LiveTests(PageCase):
    """What others do is shown without a reload."""

    def setUp(self):
        super().setUp()
        self.page.log_in("ann")

    def test_graphs_that_come_and_end(self):
        self.page.go("#/graphs")
        self.page.wait_title("Graphs")
        graph = self.api.submit("comes and ends", {"hand": {"external": True}})["id"]
        self.page.wait_row("#graphs", "Graph", f"{graph} comes and ends", Status="running 1 approval")
        self.api.post(f"graphs/{graph}/operations/hand/complete", {"outcome": "failed", "error": {
            "message": "no"}})
        self.page.wait_row("#graphs", "Graph", f"{graph} comes and ends", Status="failed",
                           Failed="1", Done="1/1")

    def test_states_in_the_overview_and_the_picture(self):
        graph = self.api.submit("changes", {"hand": {"external": True}, "after": {
            "run": "true", "dependencies": ["hand"]}})["id"]
        self.page.go(f"#/graphs/{graph}")
        self.page.wait_text(f"{hook('count-executing')} b", "1")
        self.page.wait_text(hook("approvals"), "waits for 1 approval")
        self.page.click(hook("tab-picture"))
        self.page.wait_has('#picture .box[data-state="executing"]')
        self.page.wait_has('#picture .box[data-state="pending"]')
        self.api.post(f"graphs/{graph}/operations/hand/complete", {"outcome": "succeeded"})
        self.page.wait("both boxes have succeeded", lambda: len(self.page.texts(
            '#picture .box[data-state="succeeded"]')) == 2)
        self.page.click(hook("tab-timeline"))
        self.page.wait_row("#longest", "Operation", "hand", State="succeeded")
        self.page.click(hook("tab-graph"))
        self.page.wait_text(f"{hook('count-succeeded')} b", "2")
        self.page.wait_text(".heading .state", "finished")

    def test_operations_that_are_added(self):
        graph = self.api.ask("POST", "graphs?open=true", {
            "name": "grows", "operations": {"first": {"external": True}}})["id"]
        self.page.go(f"#/graphs/{graph}/picture")
        self.page.wait("one box", lambda: len(self.page.texts("#picture .box")) == 1)
        self.api.post(f"graphs/{graph}/operations", {"operations": {
            "second": {"run": "true", "dependencies": ["first"]}}})
        self.page.wait("two boxes", lambda: len(self.page.texts("#picture .box")) == 2)
        self.page.click(hook("tab-operations"))
        self.page.wait_row("#operations", "Operation", "second", State="pending")
        self.api.ask("POST", f"graphs/{graph}/close")
        self.api.post(f"graphs/{graph}/cancel")
        self.page.wait_row("#operations", "Operation", "second", State="cancelled")

    def test_log_of_an_operation_that_runs(self):
        graph = self.api.submit("talks", {"talks": {"run": (
            "echo first line; " + self.cluster.gate("log-1") + "; echo second line; "
            + self.cluster.gate("log-2") + "; echo last line; printf 'no line end'")}})["id"]
        self.page.go(f"#/graphs/{graph}/operations/talks")
        self.page.wait_text("#log", "first line\nwaiting at log-1\n")
        self.page.wait_has('#log-phase[data-phase="open"]')
        self.assertNotIn("second", self.page.text("#log"))
        self.cluster.open_gate("log-1")
        self.page.wait_text("#log", "second line\nwaiting at log-2\n")
        self.page.wait_has('#log-phase[data-phase="open"]')
        self.cluster.open_gate("log-2")
        self.page.wait_text("#log", "last line\nno line end")
        self.page.wait_has('#log-phase[data-phase="ended"]')
        self.page.wait_text(".heading .state", "succeeded")

    def test_long_log_is_bounded(self):
        graph = self.api.submit("talks much", {"talks": {"run": "seq 1 20000"}})["id"]
        self.api.wait_status(graph, "finished")
        self.page.go(f"#/graphs/{graph}/operations/talks")
        self.page.wait_text("#log", "\n20000\n")
        self.page.wait_text("#log-left-out", "lines are left out")
        lines = self.page.text("#log").splitlines()
        self.assertLessEqual(len(lines), 6000)
        self.assertEqual(lines, [str(number) for number in range(20001 - len(lines), 20001)])
        self.assertIn(str(20000 - len(lines)), self.page.text("#log-left-out").replace(",", ""))

    def test_pieces_of_a_log(self):
        """Wherever the text is cut, the same lines come out of it."""
        text = "a\x1b[1;31mred\x1b[0m b\nlink \x1b]8;;http://x\x1b\\here\x1b]8;;\x07 end\nlast\n"
        lines = self.page.driver.execute_async_script("""
            const [text, done] = arguments;
            import("/page/log-lines.js").then(({ LogLines }) => {
                const of = (pieces) => {
                    const log = new LogLines();
                    for (const text of pieces) log.add({ number: 1, text });
                    return log.blocks.flatMap(({ lines }) => lines).join("|");
                };
                const found = new Set([of([text]), of([...text])]);
                for (let at = 1; at < text.length; at += 1) {
                    found.add(of([text.slice(0, at), text.slice(at)]));
                }
                found.add("open: " + of(["x\\u001b]never ended\\nnext line\\n"]));
                done([...found]);
            }, (error) => done(String(error)));
        """, text)
        self.assertEqual(lines, ["ared b|link here end|last", "open: x]never ended|next line"])

    def test_output_of_a_command(self):
        graph = self.api.submit("leaves something", {
            "count": {"run": "echo '{\"lines\": 17}' > \"$OPERON_OUTPUT\""},
            "silent": {"run": "true"}})["id"]
        self.api.wait_status(graph, "finished")
        self.page.go(f"#/graphs/{graph}/operations/count")
        self.page.click("#output summary")
        self.page.wait_text("#output pre", '"lines": 17')
        self.page.go(f"#/graphs/{graph}/operations/silent")
        self.page.wait_title("silent")
        self.page.click("#output summary")
        self.page.wait_text("#output", "It has left no output.")
        self.page.wait_text("#log-empty", "It printed nothing.")

    def test_queues_that_others_change(self):
        self.api.submit("in a queue that changes", {"a": {"run": "true", "queue": "changing"}})
        self.page.go("#/queues")
        self.page.wait_row("#queues", "Queue", "changing", Unfinished="0")
        self.api.ask("PATCH", "queues/changing", {"maxConcurrentOperationCount": 7})
        self.page.wait_row("#queues", "Queue", "changing", Limit="7")
        self.api.post("queues/changing/suspend", {"reason": "by another reader"})
        self.page.wait_row("#queues", "Queue", "changing", State="by another reader")

    def test_keys_that_others_change(self):
        self.api.submit("with a key that changes", {"a": {
            "run": "true", "exclusive": "changing key"}})
        self.api.ask("PUT", "keys/changing%20key", {"limit": 2})
        self.page.go("#/queues")
        self.page.wait_row("#keys", "Key", "changing key", Limit="2")
        self.api.ask("PUT", "keys/changing%20key", {"limit": 3})
        self.page.wait_row("#keys", "Key", "changing key", Limit="3")

    def test_workers_that_come_and_go(self):
        self.page.go("#/workers")
        self.page.wait_has("#workers")
        self.cluster.start_worker("worker-that-goes", "--slots", "2", "--queues", "nobody")
        self.page.wait_row("#workers", "Worker", "worker-that-goes", Status="alive")
        self.cluster.end(self.cluster.workers["worker-that-goes"])
        self.page.wait("its row is gone, or says so", lambda: (
            (row := self.page.row("#workers", "Worker", "worker-that-goes")) is None
            or row["Status"] == "gone"))

    def test_triggers_that_others_change(self):
        self.page.go("#/triggers")
        self.page.wait_title("Triggers")
        self.api.add_trigger("changing", {"a": {"operation": "nothing"}})
        self.page.wait_row("#triggers", "Trigger", "changing", Status="active", Firings="0")
        self.api.post("triggers/changing/fire")
        self.page.wait_row("#triggers", "Trigger", "changing", Firings="1")
        self.api.post("triggers/changing/suspend")
        self.page.wait_row("#triggers", "Trigger", "changing", Status="suspended")
        self.api.ask("DELETE", "triggers/changing")
        self.page.wait("its row is gone", lambda: (
            self.page.row("#triggers", "Trigger", "changing") is None))

    def test_cluster_that_changes(self):
        self.page.go("#/cluster")
        self.page.wait_has("#counts")
        before = int(self.page.text(f"{hook('count-succeeded')} b"))
        self.api.submit("counts", {"a": {"run": "true"}})
        self.page.wait("one more has succeeded", lambda: (
            int(self.page.text(f"{hook('count-succeeded')} b")) > before))

    def test_hidden_tab_asks_nothing(self):
        self.page.open("#/graphs")
        self.page.wait_has("#main h1")
        self.page.script("""
            window.__asked = 0;
            const own = window.fetch;
            window.fetch = (...all) => { window.__asked += 1; return own(...all); };
            Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
            document.dispatchEvent(new Event("visibilitychange"));""")
        graph = self.api.submit("while nobody looks", {"a": {"run": "true"}})["id"]
        self.api.wait_status(graph, "finished")
        self.page.driver.execute_async_script("setTimeout(arguments[0], 1500)")
        self.assertEqual(self.page.script("return window.__asked"), 0)
        self.assertIsNone(self.page.row("#graphs", "Graph", "while nobody looks"))
        self.page.script("""
            delete document.hidden;
            document.dispatchEvent(new Event("visibilitychange"));""")
        self.page.wait_row("#graphs", "Graph", "while nobody looks", Status="finished")


class DeathTests(PageCase):
    """The coordinator is killed under an open page."""

    expected = ("net::ERR_", "status of 401")

    def test_page_goes_on_after_the_death_of_the_coordinator(self):
        Scene.make()
        running = self.api.submit("outlives the coordinator", {
            "hand": {"external": True}, "talks": {
                "run": self.cluster.gate("death") + "; echo after the death"}})["id"]
        self.api.wait_state(running, "talks", "executing")
        self.page.log_in("ann", f"#/graphs/{running}")
        self.page.wait_title("outlives the coordinator")
        self.page.script("window.__same = true")
        self.cluster.kill_coordinator()
        self.page.wait_text("#banner", "The coordinator does not answer. Trying again…")
        self.page.click(hook("cancel"))
        self.page.answer("cancel-dialog")
        self.refused("The coordinator does not answer.")
        self.page.close_dialog()
        self.page.click(hook("nav-graphs"))
        self.page.wait_title("Graphs")
        self.page.wait_has("#banner")
        self.cluster.start_coordinator()
        # The sessions are in the memory of the coordinator.
        self.page.wait_has("#login[open]")
        self.page.type_token(TOKENS["ann"][1])
        self.page.wait_none("#login")
        self.page.wait_none("#banner")
        self.page.wait_row("#graphs", "Graph", "outlives the coordinator")
        self.page.go(f"#/graphs/{running}")
        self.page.wait_text(f"{hook('count-executing')} b", "2")
        self.api.post(f"graphs/{running}/operations/hand/complete", {"outcome": "succeeded"})
        self.page.wait_text(f"{hook('count-succeeded')} b", "1")
        # Its worker has run it meanwhile.
        self.page.go(f"#/graphs/{running}/operations/talks")
        self.page.wait_text(".heading .state", "executing")
        self.cluster.open_gate("death")
        self.page.wait_text("#log", "after the death")
        self.page.wait_text(".heading .state", "succeeded")
        self.assertTrue(self.page.script("return window.__same"), "the page was loaded again")

    def test_open_log_goes_on_after_the_death_of_the_coordinator(self):
        graph = self.api.submit("talks across a death", {"talks": {
            "run": self.cluster.gate("log-death") + "; echo after the death"}})["id"]
        self.page.log_in("ann", f"#/graphs/{graph}/operations/talks")
        self.page.wait_text("#log", "waiting at log-death")
        self.cluster.kill_coordinator()
        self.page.wait_has('#log-phase[data-phase="cut"]')
        self.cluster.start_coordinator()
        self.page.wait_has("#login[open]")
        self.page.type_token(TOKENS["ann"][1])
        self.page.wait_has('#log-phase[data-phase="open"]')
        self.cluster.open_gate("log-death")
        self.page.wait_text("#log", "after the death")
        self.page.wait_has('#log-phase[data-phase="ended"]')

    def test_command_without_a_question_while_nobody_answers(self):
        Scene.make()
        self.page.log_in("ann", "#/queues")
        self.page.wait_row("#queues", "Queue", "held", State="suspended")
        self.cluster.kill_coordinator()
        self.page.wait_has("#banner")
        self.page.click_in_row("#queues", "Queue", "held", "resume")
        self.page.wait_text("#refusal", "The coordinator does not answer.")
        self.page.click(hook("dismiss"))
        self.page.wait("the refusal is gone", lambda: self.page.text("#refusal") == "")
        self.cluster.start_coordinator()
        self.page.wait_has("#login[open]")
        self.assertTrue(self.api.queue("held")["isSuspended"])

    def test_view_that_opens_while_nobody_answers(self):
        self.page.log_in("ann", "#/workers")
        self.page.wait_has("#workers")
        self.cluster.kill_coordinator()
        self.page.wait_has("#banner")
        self.page.go("#/queues")
        self.page.wait_title("Queues and keys")
        self.page.wait_has("#banner")
        self.cluster.start_coordinator()
        self.page.wait_has("#login[open]")
        self.page.type_token(TOKENS["ann"][1])
        self.page.wait_has("#queues")
        self.page.wait_none("#banner")
