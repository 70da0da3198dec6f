"""What can be done to queues, keys, workers and triggers."""

from .api import wait_for
from .browser import hook
from .case import PageCase


class QueueActionTests(PageCase):
    """Queues and keys."""

    def setUp(self):
        super().setUp()
        self.page.log_in("ann")

    def open_queue(self, name):
        """Submits a graph whose operations are in a queue, and shows all queues."""
        graph = self.api.submit(f"in {name}", {
            "hand": {"external": True, "queue": name},
            "after": {"run": "true", "queue": name, "dependencies": ["hand"]}})["id"]
        self.api.wait_state(graph, "hand", "executing")
        self.page.go("#/queues")
        self.page.wait_row("#queues", "Queue", name, Unfinished="2")
        return graph

    def test_suspend_resume_and_cancel_a_queue(self):
        graph = self.open_queue("mail")
        self.page.click_in_row("#queues", "Queue", "mail", "suspend")
        self.page.answer("suspend-dialog", reason="the server moves")
        self.done("Suspended queue “mail”. 1 operation is still running.")
        self.page.wait_row("#queues", "Queue", "mail", State="by ann: the server moves")
        self.assertTrue(self.api.queue("mail")["isSuspended"])
        self.page.click_in_row("#queues", "Queue", "mail", "resume")
        self.done("Resumed queue “mail”, which has 2 unfinished operations.")
        self.page.wait_row("#queues", "Queue", "mail", State="active")
        self.assertFalse(self.api.queue("mail")["isSuspended"])
        self.page.click("#queues a[href$='/mail']")
        self.page.wait_title("mail")
        self.page.click(hook("cancel"))
        self.page.answer("cancel-dialog", reason="spam")
        self.done("Cancelled queue “mail”: 2 operations.")
        self.assertEqual(self.api.wait_state(graph, "after", "cancelled")["reason"], "spam")
        self.page.wait_text("#queue-facts", "Unfinished0")
        self.page.wait_has(hook("operations-empty"))

    def test_limits_of_a_queue(self):
        graph = self.open_queue("print")
        self.page.click_in_row("#queues", "Queue", "print", "queue-limits")
        self.page.answer("queue-limits-dialog", limit="3", rate="5/30s", burst="4",
                         priority="low")
        self.done("Set the limits of queue “print”.")
        queue = self.api.queue("print")
        self.assertEqual((queue["maxConcurrentOperationCount"], queue["rate"], queue["burst"],
                          queue["priority"]), (3, "5/30s", 4, "low"))
        self.page.wait_row("#queues", "Queue", "print", Limit="3", Priority="low",
                           Rate="5/30s, 4 at once after a pause")
        self.allow_status(400)
        self.page.click_in_row("#queues", "Queue", "print", "queue-limits")
        self.page.answer("queue-limits-dialog", rate="often")
        self.page.wait_has("#queue-limits-dialog [data-test=refused]")
        self.assertIn("often", self.page.text("#queue-limits-dialog [data-test=refused]"))
        self.page.answer("queue-limits-dialog", limit="", rate="", burst="", priority="normal")
        self.page.wait_none("dialog[open]")
        queue = self.api.queue("print")
        self.assertNotIn("maxConcurrentOperationCount", queue)
        self.assertNotIn("rate", queue)
        self.assertEqual(queue["priority"], "normal")
        self.page.wait_row("#queues", "Queue", "print", Limit="none", Rate="none")
        self.api.post(f"graphs/{graph}/cancel")

    def test_limits_of_a_key(self):
        graph = self.api.submit("with a key", {
            "slow": {"run": self.cluster.gate("key"), "exclusive": "dongle"},
            "other": {"run": "true", "exclusive": "dongle"}})["id"]
        self.page.go("#/queues")
        self.page.wait_row("#keys", "Key", "dongle", Limit="1", Held="1", Waiting="1",
                           Holders=f"{graph}/slow")
        self.page.click_in_row("#keys", "Key", "dongle", "key-limits")
        self.page.answer("key-limits-dialog", limit="2", rate="100/s", burst="7")
        self.done("Set the limits of key “dongle”.")
        key = self.api.key("dongle")
        self.assertEqual((key["limit"], key["rate"], key["burst"]), (2, "100/s", 7))
        self.api.wait_state(graph, "other", "succeeded")
        self.page.wait_row("#keys", "Key", "dongle", Limit="2", Waiting="0")
        self.allow_status(400)
        self.page.click_in_row("#keys", "Key", "dongle", "key-limits")
        self.page.answer("key-limits-dialog", limit="2", rate="never", burst="1")
        self.page.wait_has("#key-limits-dialog [data-test=refused]")
        self.page.answer("key-limits-dialog", limit="1", rate="", burst="")
        self.page.wait_none("dialog[open]")
        self.assertNotIn("rate", self.api.key("dongle"))
        self.cluster.open_gate("key")
        self.api.wait_status(graph, "finished")


class WorkerActionTests(PageCase):
    """Workers."""

    def test_drain(self):
        self.page.log_in("ann")
        self.cluster.start_worker("worker-to-drain", "--slots", "1", "--queues", "nobody")
        self.page.go("#/workers")
        self.page.click_in_row("#workers", "Worker", "worker-to-drain", "drain")
        self.page.wait_text("#drain-dialog", "It holds 0 attempts")
        self.page.answer("drain-dialog")
        self.done("Worker worker-to-drain drains: it takes no new operations.")
        worker = self.cluster.workers["worker-to-drain"]
        wait_for("the worker has ended", lambda: worker.poll() is not None)
        self.assertEqual(worker.returncode, 0)
        self.page.wait("its row is gone, or says so", lambda: (
            (row := self.page.row("#workers", "Worker", "worker-to-drain")) is None
            or row["Status"] == "gone"))


class TriggerActionTests(PageCase):
    """Triggers."""

    def setUp(self):
        super().setUp()
        self.page.log_in("ann")

    def test_fire(self):
        self.api.add_trigger("by hand", {"a": {
            "run": "cat \"$OPERON_EVENT\" > \"$OPERON_OUTPUT\""}})
        self.page.go("#/triggers")
        self.page.click_in_row("#triggers", "Trigger", "by hand", "fire")
        self.page.answer("fire-dialog", data="[1, 2")
        self.refused("The data is not JSON")
        self.page.answer("fire-dialog", data='{"day": "2026-05-01"}')
        self.done("Fired trigger “by hand”: firing 1.")
        firing = self.api.get("triggers/by%20hand/history")["firings"][0]
        self.api.wait_status(wait_for("it has submitted its graph", lambda: str(
            self.api.get("triggers/by%20hand/history")["firings"][0].get("graph", ""))),
            "finished")
        self.assertEqual(firing["number"], 1)
        firing = self.api.get("triggers/by%20hand/history")["firings"][0]
        event = self.api.get(f"graphs/{firing['graph']}/operations/a/output")
        self.assertEqual(event["data"], {"day": "2026-05-01"})
        self.page.wait_row("#triggers", "Trigger", "by hand", Firings="1",
                           **{"Last firing": "succeeded"})
        self.page.click("#triggers a[href$='by%20hand']")
        self.page.wait_row("#history", "Firing", "1", Status=f"graph {firing['graph']}")

    def test_suspend_and_resume(self):
        self.api.add_trigger("every day", {"a": {"operation": "nothing"}},
                             on={"every": "24h"})
        self.page.go("#/triggers/every%20day")
        self.page.wait_has("#trigger-facts")
        self.assertFalse(self.page.has(hook("fire")), "only triggers on events are fired by hand")
        self.page.click(hook("suspend"))
        self.page.answer("suspend-dialog", reason="holidays")
        self.done("Suspended trigger “every day”.")
        self.page.wait_text("#trigger-facts", "by ann: holidays")
        trigger = self.api.trigger("every day")
        self.assertEqual((trigger["status"], trigger["suspension"]["reason"]),
                         ("suspended", "holidays"))
        self.page.wait_has("#explain .reasons li")
        self.page.click(hook("resume"))
        self.done("Resumed trigger “every day”.")
        self.page.wait_text("#trigger-facts", "active")
        self.assertEqual(self.api.trigger("every day")["status"], "active")

    def test_refusal_is_said_in_words(self):
        self.api.add_trigger("soon gone", {"a": {"operation": "nothing"}})
        self.page.go("#/triggers")
        self.page.click_in_row("#triggers", "Trigger", "soon gone", "fire")
        self.page.wait_has("#fire-dialog[open]")
        self.api.ask("DELETE", "triggers/soon%20gone")
        self.allow_status(404)
        self.page.answer("fire-dialog")
        self.page.wait_text("#fire-dialog [data-test=refused]", "soon gone")
        self.page.close_dialog()
