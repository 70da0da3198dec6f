"""What can be done to graphs: what the page says, and that the coordinator did it."""

from .api import ApiError
from .browser import hook
from .case import PageCase


class GraphActionTests(PageCase):
    """Suspend, resume, cancel and retry of a graph."""

    def setUp(self):
        super().setUp()
        self.page.log_in("ann")

    def open_graph(self, name, operations, **fields):
        """Submits a graph and shows it."""
        graph = self.api.submit(name, operations, **fields)["id"]
        self.page.go(f"#/graphs/{graph}")
        self.page.wait_title(name)
        return graph

    def test_suspend_and_resume(self):
        graph = self.open_graph("held for a while", {
            "hand": {"external": True}, "after": {"run": "true", "dependencies": ["hand"]}})
        self.api.wait_state(graph, "hand", "executing")
        self.page.click(hook("suspend"))
        self.page.answer("suspend-dialog", reason="the disk is full")
        self.done(f"Suspended graph {graph} “held for a while”. 1 operation is still running.")
        self.page.wait_none("dialog[open]")
        suspension = self.api.graph(graph)["suspension"]
        self.assertEqual((suspension["reason"], suspension["by"]), ("the disk is full", "ann"))
        self.page.wait_text(".heading .state", "suspended")
        self.page.wait_text("#graph-progress", "by ann: the disk is full")
        self.page.click(hook("resume"))
        self.done(f"Resumed graph {graph} “held for a while”, "
                  "which has 2 unfinished operations.")
        self.assertNotIn("suspension", self.api.graph(graph))
        self.page.wait_text(".heading .state", "running")
        self.page.wait_has(hook("suspend"))
        self.api.post(f"graphs/{graph}/cancel")

    def test_cancel_and_retry(self):
        graph = self.open_graph("stopped and begun again", {
            "hand": {"external": True}, "after": {"run": "true", "dependencies": ["hand"]}})
        self.api.wait_state(graph, "hand", "executing")
        self.page.click(hook("cancel"))
        self.page.answer("cancel-dialog", reason="wrong book")
        self.done(f"Cancelled graph {graph} “stopped and begun again”: 2 operations.")
        self.page.wait_text("#graph-progress", "reason: wrong book")
        self.assertEqual(self.api.wait_status(graph, "cancelled")["cancelReason"], "wrong book")
        self.page.wait_text(".heading .state", "cancelled")
        self.page.wait_none(hook("cancel"))
        self.page.wait_none(hook("suspend"))
        self.page.click(hook("retry"))
        self.page.wait_has("#retry-dialog[open]")
        self.assertTrue(self.page.find(hook("field-cancelled")).is_selected(),
                        "nothing failed, so only the cancelled ones can be meant")
        self.page.answer("retry-dialog")
        self.done(f"2 operations of graph {graph} will run again.")
        self.api.wait_state(graph, "hand", "executing")
        self.page.wait_row("#operations", "Operation", "hand", State="executing")
        self.api.post(f"graphs/{graph}/operations/hand/complete", {"outcome": "succeeded"})
        self.api.wait_status(graph, "finished")
        self.page.wait_text(".heading .state", "finished")
        self.page.wait_none(hook("retry"))

    def test_retry_of_what_failed(self):
        file = self.cluster.scratch / "repaired"
        graph = self.open_graph("repaired", {
            "broken": {"run": f"test -e {file}"},
            "after": {"run": "true", "dependencies": ["broken"]}, "hand": {"external": True}})
        self.api.wait_state(graph, "after", "skipped")
        file.touch()
        self.page.click(hook("retry"))
        self.page.wait_text("#retry-dialog", "(1)")
        self.page.answer("retry-dialog", cancelled=False)
        self.done(f"operations of graph {graph} will run again.")
        self.api.wait_state(graph, "after", "succeeded")
        self.page.wait_row("#operations", "Operation", "after", State="succeeded")
        self.api.post(f"graphs/{graph}/operations/hand/complete", {"outcome": "succeeded"})

    def test_refusal_is_said_in_words(self):
        graph = self.open_graph("refuses a long reason", {"hand": {"external": True}})
        self.addCleanup(self.api.post, f"graphs/{graph}/cancel")
        self.api.wait_state(graph, "hand", "executing")
        with self.assertRaises(ApiError) as refusal:
            self.api.post(f"graphs/{graph}/suspend", {"reason": "x" * 4097})
        self.allow_status(refusal.exception.status)
        self.page.click(hook("suspend"))
        self.page.wait_has("#suspend-dialog[open]")
        self.page.script("const one = document.querySelector(arguments[0]);"
                         "one.value = 'x'.repeat(4097);"
                         "one.dispatchEvent(new Event('input', { bubbles: true }))",
                         hook("field-reason"))
        self.page.click(f"#suspend-dialog {hook('submit')}")
        self.refused(refusal.exception.detail)
        self.assertEqual(self.api.graph(graph)["status"], "running")
        # The question stays open, and a better answer is taken.
        self.page.answer("suspend-dialog", reason="short")
        self.done(f"Suspended graph {graph}")
        self.assertEqual(self.api.graph(graph)["status"], "suspended")

    def test_what_has_ended_meanwhile(self):
        graph = self.open_graph("ends meanwhile", {"hand": {"external": True}})
        self.api.wait_state(graph, "hand", "executing")
        self.page.click(hook("cancel"))
        self.page.wait_has("#cancel-dialog[open]")
        self.api.post(f"graphs/{graph}/operations/hand/complete", {"outcome": "succeeded"})
        self.api.wait_status(graph, "finished")
        self.page.answer("cancel-dialog")
        self.done(f"Nothing left to cancel in graph {graph} “ends meanwhile”.")
        self.page.wait_text(".heading .state", "finished")

    def test_closed_dialog_does_nothing(self):
        graph = self.open_graph("left alone", {"hand": {"external": True}})
        self.page.click(hook("cancel"))
        self.page.wait_has("#cancel-dialog[open]")
        self.page.close_dialog()
        self.assertEqual(self.api.graph(graph)["status"], "running")
        self.page.click(hook("cancel"))
        self.page.wait_has("#cancel-dialog[open]")
        self.page.driver.back()
        self.page.wait_none("dialog[open]")
        self.assertEqual(self.api.graph(graph)["status"], "running")
        self.api.post(f"graphs/{graph}/cancel")
