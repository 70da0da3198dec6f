"""The timeline of a graph: gaps, the critical path, the ends of the zoom, and the time left."""

import re

from .browser import hook
from .case import PageCase

DOWN, ADD = "\ue015", "+"


# Answers for each timeline as the coordinator does, with bars that are cut where the part ends.
DAY = """
    const [day, original] = [86_400, window.fetch];
    window.fetch = async (input, options) => {
        const url = new URL(input instanceof Request ? input.url : input, location.href);
        if (!url.pathname.endsWith("/timeline")) return original(input, options);
        const from = Number(url.searchParams.get("from") ?? 0);
        const to = Number(url.searchParams.get("to") ?? day);
        const bars = (slot) => Array.from({ length: day / 60 }, (_, minute) => ({
            name: `op-${slot}-${minute}`, index: minute * 4 + slot, attempt: 1,
            from: Math.max(0, minute * 60 - 30), to: minute * 60 + 29, state: "succeeded",
            isCritical: slot === 0, count: 1,
        })).filter((bar) => bar.to >= from && bar.from <= to);
        return Response.json({
            startedAt: "2026-11-30T00:00:00Z", length: day, isLive: false, from, to, left: 0,
            rows: [0, 1, 2, 3].map((slot) => ({
                worker: "w1", slot: slot + 1, bars: bars(slot),
            })),
        });
    };
"""


class TimelineTests(PageCase):
    """What the canvas shows is told in words as well; these are checked."""

    def setUp(self):
        super().setUp()
        self.page.log_in("ann")

    def chosen(self, keys):
        """What is said of the bar that these keys choose."""
        self.page.act("#timeline", lambda canvas: canvas.send_keys(keys))
        self.page.wait_has("#timeline-tip")
        return self.page.text("#timeline-hint")

    def test_gaps_that_were_waiting(self):
        graph = self.api.submit("waits", {
            "first": {"run": "sleep 0.2"},
            "second": {"run": "sleep 0.2", "delay": "1s", "dependencies": ["first"]}})["id"]
        self.api.wait_status(graph, "finished", 60)
        bars = {bar["name"]: bar for row in self.api.get(f"graphs/{graph}/timeline")["rows"]
                for bar in row["bars"]}
        second = bars["second"]
        self.assertGreater(second["from"] - second["waitedFrom"], 0.9)
        self.assertGreaterEqual(second["waitedFrom"], bars["first"]["to"])
        self.page.go(f"#/graphs/{graph}/timeline")
        self.page.wait_row("#longest", "Operation", "second", State="succeeded")
        said = ""
        for _ in bars:
            said = self.chosen(DOWN)
            if said.startswith("second"):
                break
        self.assertRegex(said, r"^second.*, after a gap of \d\S*s in which it was waiting")
        self.assertIn("waiting", self.page.text("#timeline-tip"))
        # Both are on the critical path, and the legend says how that and the gap are drawn.
        self.assertIn("on the critical path", said)
        legend = self.page.text(".legend")
        self.assertIn("below a bar: critical path", legend)
        self.assertIn("before a bar: a gap in which it was waiting", legend)

    def test_critical_path(self):
        graph = self.api.submit("two branches", {
            "long": {"run": "sleep 0.6"}, "short": {"run": "true"},
            "end": {"run": "true", "dependencies": ["long", "short"]}})["id"]
        self.api.wait_status(graph, "finished", 60)
        self.page.go(f"#/graphs/{graph}/timeline")
        self.page.wait_row("#longest", "Operation", "long", State="succeeded")
        said = {}
        for _ in range(3):
            text = self.chosen(DOWN)
            said[text.split(",")[0]] = "on the critical path" in text
        self.assertEqual(said, {"long": True, "short": False, "end": True})
        self.page.click(hook("tab-picture"))
        self.page.wait("the picture marks the same", lambda: self.page.script("""
            return [...document.querySelectorAll("#picture .box.critical")].length
        """) == 2)

    def test_ends_of_the_zoom(self):
        graph = self.api.submit("zooms", {"one": {"run": "sleep 0.5"}})["id"]
        self.api.wait_status(graph, "finished", 60)
        self.page.go(f"#/graphs/{graph}/timeline")
        self.page.wait_row("#longest", "Operation", "one", State="succeeded")
        whole = self.page.text("#timeline-span")
        # Nothing is shorter than a twentieth of a second, and nothing longer than the run.
        self.page.act("#timeline", lambda canvas: canvas.send_keys(ADD * 20))
        self.page.wait("the shortest span is seen", lambda: re.search(
            r": 50ms of ", self.page.text("#timeline-span")))
        shortest = self.page.text("#timeline-span")
        self.page.act("#timeline", lambda canvas: canvas.send_keys(ADD))
        self.assertEqual(self.page.text("#timeline-span"), shortest)
        self.page.act("#timeline", lambda canvas: canvas.send_keys("-" * 40))
        self.page.wait_text("#timeline-span", whole)

    def test_a_day(self):
        """The page as it is; only the answer is made here: four slots, an attempt a minute."""
        graph = self.api.submit("a day", {"one": {"run": "true"}})["id"]
        self.api.wait_status(graph, "finished", 60)
        self.page.script(DAY)
        self.page.go(f"#/graphs/{graph}/timeline")
        self.page.wait_text("#timeline-span", "From 0:00 to 1d 00:00:00 after the submission: "
                            "1d 00:00:00 of 1d 00:00:00")
        self.assertEqual(len(self.page.rows("#longest")), 20)
        drawn = self.drawn()
        self.page.act("#timeline", lambda canvas: canvas.send_keys(ADD * 60))
        self.page.wait("the shortest span is seen", lambda: re.search(
            r"From (11:59:59|12:00:00)\.\d{3} to 12:00:00\.\d{3} after the submission: "
            r"50ms of 1d 00:00:00$",
            self.page.text("#timeline-span")))
        # Each of the four slots runs something then.
        self.page.wait("what ran then is listed", lambda: len(self.page.rows("#longest")) == 4)
        self.assertNotEqual(self.drawn(), drawn)
        self.page.act("#timeline", lambda canvas: canvas.send_keys("-" * 16))
        self.page.wait("some seconds are seen", lambda: re.search(
            r": [1-9]\.\ds of 1d", self.page.text("#timeline-span")))
        self.page.act("#timeline", lambda canvas: canvas.send_keys("0"))
        self.page.wait_text("#timeline-span", "1d 00:00:00 of 1d 00:00:00")
        self.page.wait("everything is drawn again", lambda: self.drawn() == drawn)

    def drawn(self):
        return self.page.script("return document.querySelector('#timeline').toDataURL()")

    def test_time_left(self):
        steps = {f"step {number}": {
            "run": "sleep 0.4", "dependencies": [f"step {number - 1}"] if number else []}
            for number in range(30)}
        graph = self.api.submit("takes a while", steps)["id"]
        self.page.go(f"#/graphs/{graph}")
        self.page.wait("the time left is told", lambda: self.page.has("#eta") and re.fullmatch(
            r"about \d+:\d\d at this pace", self.page.text("#eta")))
        self.api.post(f"graphs/{graph}/cancel")
        self.page.wait_text(".heading .state", "cancelled")
        self.page.wait("a graph that has ended has no time left", lambda: not self.page.has("#eta"))
