"""Every view shows what the API says."""

from urllib.parse import quote

from .browser import hook
from .case import PageCase
from .scene import GRAPH, Scene

STATES = ("pending", "ready", "dispatched", "executing", "succeeded", "failed", "cancelled",
          "skipped")


class ViewTests(PageCase):
    """Each view against the API."""

    def setUp(self):
        super().setUp()
        self.graph = Scene.make()
        self.page.log_in("ann")

    def show(self, view):
        """Goes to a view."""
        route, selector = Scene.route(view)
        self.page.go(route)
        self.page.wait_has(selector)

    def facts(self, selector):
        """The facts of a list, by name."""
        return self.page.script("""
            return Object.fromEntries([...document.querySelectorAll(`${arguments[0]} > div`)].map(
                (one) => [one.querySelector("dt").textContent,
                    one.querySelector("dd").textContent]))""", selector)

    def test_graphs(self):
        # Other tests may have submitted more graphs than a page has.
        self.page.go(f"#/graphs?name={quote(GRAPH)}")
        row = self.page.wait_row("#graphs", "Graph", GRAPH, Status="running", Failed="1")
        counts = self.api.graph(self.graph)["counts"]
        done = sum(counts[state] for state in STATES[4:])
        self.assertIn(f"{done}/{sum(counts.values())}", row["Done"])
        self.page.go("#/graphs")
        ids = [str(graph["id"]) for graph in self.api.get("graphs?limit=50")["graphs"]]
        self.page.wait("the newest graphs are shown", lambda: ids == [
            row["Graph"].split(" ")[0] for row in self.page.rows("#graphs")])
        self.assertEqual(self.page.driver.title, "Graphs – Operon")

    def test_graphs_filters(self):
        self.show("graphs")
        self.page.write(hook("filter-name"), GRAPH)
        self.page.wait("one graph is left", lambda: len(self.page.rows("#graphs")) == 1)
        self.assertEqual(self.page.route(), f"#/graphs?name={quote(GRAPH)}")
        self.page.choose(hook("filter-status"), "cancelled")
        self.page.wait_has(hook("graphs-empty"))
        self.page.write(hook("filter-name"), "no such graph")
        self.page.wait_has(hook("graphs-empty"))
        self.page.open("#/graphs?status=cancelled&name=x")
        self.page.wait_has(hook("graphs-empty"))
        self.assertEqual(self.page.find(hook("filter-name")).get_attribute("value"), "x")

    def test_graph(self):
        self.show("graph")
        counts = self.api.graph(self.graph)["counts"]
        for state in STATES:
            self.page.wait_text(f"{hook(f'count-{state}')} b", str(counts[state]))
        self.page.wait_row("#running", "Operation", "slow")
        self.page.wait_row("#running", "Operation", "approve",
                           **{"Who runs it": "somebody outside"})
        self.assertEqual(self.facts("#graph-facts")["By"], "ann")
        percent = self.page.attribute("#graph-progress [role=progressbar]", "aria-valuenow")
        done = sum(counts[state] for state in STATES[4:])
        self.assertEqual(int(percent), done * 100 // sum(counts.values()))
        self.page.click(f"{hook('count-failed')} a")
        self.page.wait("only what failed is left", lambda: (
            [row["Operation"] for row in self.page.rows("#operations")] == ["broken"]))

    def test_operations(self):
        self.show("operations")
        known = self.api.get(f"graphs/{self.graph}/operations?limit=200")["operations"]
        self.page.wait("all operations are shown", lambda: (
            [row["Operation"] for row in self.page.rows("#operations")]
            == [operation["name"] for operation in known]))
        for operation in known:
            self.page.wait_row("#operations", "Operation", operation["name"],
                               State=operation.get("outcome", operation["state"]),
                               Queue=operation["queue"], Priority=operation["priority"],
                               Attempts=str(operation["attempts"]))
        self.page.wait_row("#operations", "Operation", "broken", Detail="3")
        self.page.wait_row("#operations", "Operation", "rejected", Detail="not today")
        self.page.wait_row("#operations", "Operation", "after broken", Detail="broken")
        self.page.write(hook("filter-prefix"), "convert[")
        self.page.wait("only elements are listed",
                       lambda: len(self.page.rows("#operations")) == 12)

    def test_operation(self):
        self.show("operation")
        detail = self.api.detail(self.graph, "broken")
        self.page.wait_text("#detail", detail["operation"]["error"]["message"])
        attempts = self.page.rows("#attempts")
        self.assertEqual([row["Worker"] for row in attempts],
                         [attempt["worker"] for attempt in detail["attempts"]])
        self.assertEqual([row["Ending"] for row in attempts], ["failed", "failed"])
        self.assertEqual(self.page.text("#command"), "echo before the end; echo an error >&2; "
                                                     "exit 3")
        self.page.wait_text("#log", "an error")
        self.page.wait_has('#log-phase[data-phase="ended"]')
        self.page.wait_text("#dependents", "after broken")
        self.page.click("#dependents a")
        self.page.wait_title("after broken")
        [dependency] = self.api.detail(self.graph, "after broken")["dependencies"]
        self.page.wait_row("#dependencies", "Operation", "broken", State="failed",
                           Condition=dependency["condition"])
        self.page.wait_text("#explain .chain", "broken")

    def test_operation_that_waits(self):
        self.show("waiting")
        known = self.api.get(f"graphs/{self.graph}/operations/publish/explain")
        reasons = known["reasons"] + known.get("rootReasons", [])
        self.assertEqual(
            self.page.script("return [...document.querySelectorAll('#explain > .reasons li')]"
                             ".map((one) => one.dataset.code)"),
            [reason["code"] for reason in reasons])
        facts = self.facts("#operation-facts")
        self.assertEqual((facts["Priority"], facts["Queue"], facts["Timeout"]),
                         ("high", "default", "5:00"))

    def test_picture(self):
        self.show("picture")
        picture = self.api.get(f"graphs/{self.graph}/picture")
        self.assertEqual(len(self.page.texts("#picture .box")), len(picture["boxes"]))
        self.page.wait_text("#picture-summary", f"{picture['operations']} operations")
        self.page.write(hook("picture-search"), "approve")
        self.page.wait_text("#picture-found", "1 box")
        self.page.wait_has("#picture .box.found.here")
        label = self.page.attribute("#picture .box.found", "aria-label")
        self.assertIn("approve: executing", label)
        before = self.page.attribute("#picture", "viewBox")
        self.page.click(hook("zoom-in"))
        self.page.wait("the picture is larger", lambda: (
            self.page.attribute("#picture", "viewBox") != before))
        self.page.click(hook("zoom-all"))
        self.page.script("document.querySelector('#picture .box.found')"
                         ".dispatchEvent(new MouseEvent('click', { bubbles: true }))")
        self.page.wait_title("approve")

    def test_timeline(self):
        self.show("timeline")
        timeline = self.api.get(f"graphs/{self.graph}/timeline")
        bars = {(bar["name"], bar["attempt"]) for row in timeline["rows"] for bar in row["bars"]
                if bar["count"] == 1}
        shown = {(row["Operation"], int(row["Attempt"])) for row in self.page.rows("#longest")}
        self.assertTrue(shown and shown <= bars, f"{shown - bars} is shown")
        self.page.wait_row("#longest", "Operation", "slow", State="executing")
        whole = self.page.text("#timeline-span")
        self.page.click(hook("zoom-in"))
        self.page.wait("less is seen", lambda: self.page.text("#timeline-span") != whole)
        self.page.click(hook("zoom-all"))
        self.page.act("#timeline", lambda canvas: canvas.send_keys("\ue015"))
        self.page.wait_has("#timeline-tip")
        self.assertIn("attempt", self.page.text("#timeline-hint"))
        name = self.page.text("#timeline-tip bdi")
        self.page.press("\ue007")
        if "attempts" not in name:
            self.page.wait_title(name)

    def test_queues_and_keys(self):
        self.show("queues")
        for queue in self.api.get("queues")["queues"]:
            limit = queue.get("maxConcurrentOperationCount", "none")
            self.page.wait_row("#queues", "Queue", queue["name"], Limit=str(limit),
                               Priority=queue["priority"], Rate=queue.get("rate", "none"),
                               Unfinished=str(queue["unfinished"]))
        self.page.wait_row("#queues", "Queue", "held", State="suspended")
        self.page.wait_row("#keys", "Key", "licence", Limit="2", Held="1",
                           Holders=f"{self.graph}/slow", **{"Who waits": f"{self.graph}/next in line"})
        self.page.write(hook("filter-name"), "limit")
        self.page.wait("one queue is left", lambda: len(self.page.rows("#queues")) == 1)

    def test_queue(self):
        self.show("queue")
        facts = self.facts("#queue-facts")
        self.assertEqual((facts["Limit"], facts["Running"], facts["Rate"]),
                         ("1", "1", "10/s, 3 at once after a pause"))
        self.page.wait_row("#operations", "Operation", f"{self.graph}/slow", State="executing")
        self.page.wait_row("#operations", "Operation", f"{self.graph}/next in line")

    def test_workers(self):
        self.show("workers")
        for worker in self.api.get("workers")["workers"]:
            self.page.wait_row("#workers", "Worker", worker["name"], Status=worker["status"],
                               Slots=f"of {worker['slots']} busy", Labels="os=linux")
        self.page.wait_row("#workers", "Worker", "worker-a", Labels="region=eu",
                           **{"Free resources": "licences 2 of 3"})
        runner = next(worker for worker in self.api.get("workers")["workers"] if any(
            one["operation"]["name"] == "slow" for one in worker.get("running", [])))
        row = self.page.wait_row("#workers", "Worker", runner["name"], Runs=f"{self.graph}/slow")
        self.assertRegex(row["Since"], r"\d")

    def test_triggers(self):
        self.show("triggers")
        for trigger in self.api.get("triggers")["triggers"]:
            self.page.wait_row("#triggers", "Trigger", trigger["name"], On=trigger["on"],
                               Status=trigger["status"], Firings=str(trigger["firings"]))
        self.page.click("#triggers a[href$='nightly']")
        self.page.wait_title("nightly")
        self.page.wait("its next ticks are shown", lambda: len(self.page.rows("#ticks")) == 5)
        ticks = self.api.get("triggers/nightly/next?limit=5")["ticks"]
        self.assertEqual(
            self.page.script("return [...document.querySelectorAll('#ticks td:last-child time')]"
                             ".map((one) => one.dateTime)"),
            [tick["local"] for tick in ticks])
        self.show("fired")
        self.page.wait_row("#history", "Firing", "1", Status="succeeded")

    def test_cluster(self):
        self.show("cluster")
        status = self.api.get("status")
        facts = self.facts("#cluster-facts")
        self.assertEqual((facts["Version"], facts["Reign"]), (status["version"], status["reign"]))
        self.assertEqual(facts["Workers"], str(status["workers"]))
        self.page.wait_row("#demands", "What they ask for", "mars", **{"No worker for": "1"})
        self.assertTrue(self.page.row("#demands", "What they ask for", "mars")["Missing"])

    def test_rates_and_latencies(self):
        self.show("cluster")

        def is_measured():
            # So that something happens between two looks.
            self.api.submit("rates", {"a": {"operation": "nothing"}})
            rates, latencies = self.facts("#rate-facts"), self.facts("#latency-facts")
            return (rates["Operations finished"] != "0/s"
                    and all(time.endswith("s") for time in latencies.values()))

        self.page.wait("rates and latencies", is_measured)
        self.page.wait("nothing happens", lambda: (
            self.facts("#rate-facts")["Operations finished"] == "0/s"))

    def test_health(self):
        self.show("cluster")
        status = self.api.get("status")
        for name in ("store", "broker"):
            self.assertEqual(self.page.text(f"#{name}"), status[name])
            self.assertEqual(self.page.attribute(f"#{name}", "data-well"), "true")

    def test_picture_shows_whole_titles(self):
        self.show("picture")
        boxes = self.api.get(f"graphs/{self.graph}/picture")["boxes"]
        # The server makes each box as wide as its title.
        self.assertEqual(self.page.texts("#picture .box text"), [box["title"] for box in boxes])

    def test_nothing_to_download(self):
        self.show("operation")
        self.page.click("#output summary")
        self.page.wait_text("#output", "It has left no output.")
        self.assertFalse(self.page.has("#output a"), "there is nothing to download")

    def test_trigger_that_has_fired(self):
        self.show("fired")
        self.assertNotIn("Why it has not fired", self.page.texts("#main h2"))

    def test_nothing_here(self):
        self.allow_status(404)
        for route in ("#/graphs/no%20such%20graph", "#/graphs/9999/operations",
                      "#/graphs/no%20such%20graph/picture", "#/graphs/9999/timeline",
                      f"#/graphs/{self.graph}/operations/no%20such%20operation",
                      "#/triggers/no%20such%20trigger", "#/queues/no%20such%20queue"):
            with self.subTest(route=route):
                self.page.go(route)
                self.page.wait_has(hook("problem"))
                self.assertIn("no", self.page.text(hook("problem")))
        self.page.go("#/nothing/here")
        self.page.wait_title("Nothing here")
