"""What can be done to an operation."""

from .browser import hook
from .case import PageCase


class OperationActionTests(PageCase):
    """Complete, cancel, retry, suspend, resume and priority of an operation."""

    def setUp(self):
        super().setUp()
        self.page.log_in("ann")

    def open_operation(self, name, operations, operation, **fields):
        """Submits a graph and shows one of its operations."""
        graph = self.api.submit(name, operations, **fields)["id"]
        self.addCleanup(self.api.post, f"graphs/{graph}/cancel")
        self.page.go(f"#/graphs/{graph}/operations/{operation}")
        self.page.wait_title(operation)
        return graph

    def state(self, text):
        """Waits for the state in the heading."""
        self.page.wait_text(".heading .state", text)

    def test_complete_with_an_output(self):
        graph = self.open_operation("to approve", {"hand": {"external": True, "input": {"a": 1}}},
                                    "hand")
        self.state("executing")
        self.page.click("#input summary")
        self.page.wait_text("#input pre", '"a": 1')
        self.page.click(hook("complete"))
        self.page.answer("complete-dialog", outcome="succeeded", output="{not JSON")
        self.refused("The output is not JSON")
        self.assertEqual(self.api.operation(graph, "hand")["state"], "executing")
        self.page.answer("complete-dialog", output='{"by": "ann"}')
        self.done(f"Completed operation {graph}/hand: it succeeded.")
        self.state("succeeded")
        self.api.wait_status(graph, "finished")
        output = self.api.get(f"graphs/{graph}/operations/hand/output")
        self.assertEqual(output, {"by": "ann"})
        self.page.click("#output summary")
        self.page.wait_text("#output pre", '"by"')

    def test_output_stays_as_it_is_written(self):
        graph = self.open_operation("exact", {"hand": {"external": True}}, "hand")
        self.state("executing")
        self.page.click(hook("complete"))
        self.page.answer("complete-dialog", output='{"number": 12345678901234567890}')
        self.done(f"Completed operation {graph}/hand: it succeeded.")
        self.assertEqual(self.api.get(f"graphs/{graph}/operations/hand/output"),
                         {"number": 12345678901234567890})

    def test_complete_with_a_failure(self):
        graph = self.open_operation("to refuse", {"hand": {"external": True}}, "hand")
        self.state("executing")
        self.page.click(hook("complete"))
        self.page.answer("complete-dialog", outcome="failed", message="no budget")
        self.done(f"Completed operation {graph}/hand: it failed.")
        self.state("failed")
        self.page.wait_text("#detail", "no budget")
        operation = self.api.operation(graph, "hand")
        self.assertEqual((operation["outcome"], operation["error"]["message"]),
                         ("failed", "no budget"))

    def test_complete_with_a_cancellation(self):
        graph = self.open_operation("to drop", {"hand": {"external": True}}, "hand")
        self.state("executing")
        self.page.click(hook("complete"))
        self.page.answer("complete-dialog", outcome="cancelled", reason="nobody needs it")
        self.done(f"Completed operation {graph}/hand: it was cancelled.")
        self.page.wait_text("#detail", "nobody needs it")
        operation = self.api.operation(graph, "hand")
        self.assertEqual((operation["outcome"], operation["reason"]),
                         ("cancelled", "nobody needs it"))

    def test_second_completion_is_refused(self):
        graph = self.open_operation("completed twice", {"hand": {"external": True}}, "hand")
        self.state("executing")
        self.page.click(hook("complete"))
        self.page.wait_has("#complete-dialog[open]")
        self.api.post(f"graphs/{graph}/operations/hand/complete", {"outcome": "succeeded"})
        self.allow_status(409)
        self.page.answer("complete-dialog", outcome="failed", message="too late")
        self.page.wait_has("#complete-dialog [data-test=refused]")
        self.assertEqual(self.api.operation(graph, "hand")["outcome"], "succeeded")
        self.page.close_dialog()

    def test_cancel_of_one_that_runs(self):
        gate = self.cluster.gate("cancelled")
        graph = self.open_operation("stopped", {
            "slow": {"run": gate, "grace": "1s"},
            "after": {"run": "true", "dependencies": ["slow"]}}, "slow")
        self.state("executing")
        self.page.click(hook("cancel"))
        self.page.answer("cancel-dialog", reason="takes too long")
        self.done(f"Cancelled operation {graph}/slow. It is running and was asked to stop.")
        self.state("cancelled")
        self.assertEqual(self.api.operation(graph, "slow")["reason"], "takes too long")
        self.page.wait_row("#attempts", "Attempt", "1", Ending="cancelled")
        self.page.wait_none(hook("cancel"))
        self.cluster.open_gate("cancelled")
        self.page.click(hook("retry"))
        self.page.answer("retry-dialog")
        self.done(f"of graph {graph} will run again.")
        self.api.wait_state(graph, "slow", "succeeded")
        self.state("succeeded")
        self.page.wait("both attempts are shown", lambda: len(self.page.rows("#attempts")) == 2)

    def test_cancel_with_what_depends_on_it(self):
        graph = self.open_operation("stopped with others", {
            "hand": {"external": True}, "after": {"run": "true", "dependencies": {
                "hand": "finished"}}, "more": {"run": "true", "dependencies": ["after"]}}, "hand")
        self.state("executing")
        self.page.click(hook("cancel"))
        self.page.answer("cancel-dialog", cascade=True)
        self.done(f"Cancelled operation {graph}/hand: 3 operations.")
        self.api.wait_state(graph, "more", "cancelled")

    def test_suspend_and_resume(self):
        graph = self.open_operation("one of them waits", {
            "hand": {"external": True}, "after": {"run": "true", "dependencies": ["hand"]}},
            "after")
        self.state("pending")
        self.page.click(hook("suspend"))
        self.page.answer("suspend-dialog", reason="not before noon")
        self.done(f"Suspended operation {graph}/after.")
        self.page.wait_has('#explain li[data-code="operationSuspended"]')
        self.page.wait_text("#explain", "not before noon")
        self.api.post(f"graphs/{graph}/operations/hand/complete", {"outcome": "succeeded"})
        self.state("ready")
        self.page.click(hook("resume"))
        self.done(f"Resumed operation {graph}/after.")
        self.api.wait_state(graph, "after", "succeeded")
        self.state("succeeded")

    def test_priority(self):
        graph = self.open_operation("most important", {
            "hand": {"external": True}, "after": {"run": "true", "dependencies": ["hand"]}},
            "after")
        self.page.click(hook("priority"))
        self.page.wait_has("#priority-dialog[open]")
        self.assertEqual(self.page.find(hook("field-priority")).get_attribute("value"), "normal")
        self.page.answer("priority-dialog", priority="veryHigh")
        self.done(f"The priority of operation {graph}/after is veryHigh.")
        self.assertEqual(self.api.operation(graph, "after")["priority"], "veryHigh")
        self.page.wait_text("#operation-facts", "veryHigh")
        self.page.click(hook("priority"))
        self.page.wait_has("#priority-dialog[open]")
        self.api.post(f"graphs/{graph}/cancel")
        self.allow_status(409)
        self.page.answer("priority-dialog", priority="low")
        self.page.wait_has("#priority-dialog [data-test=refused]")
        self.page.close_dialog()
