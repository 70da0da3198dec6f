"""What a narrow screen must not cut or break."""

import itertools

from .case import PageCase
from .scene import Scene

WIDTH = 360
# As a cluster of containers names a worker, and longer than a line of the screen.
NAMES = ("operon-worker-7d9f8b6c54-x2k4q", "first part " + "of a long name " * 8 + "last part")

# Notes each text that a canvas draws, and whether all of it is within the clip and the canvas.
LISTEN = """
window.__drawn = [];
const own = CanvasRenderingContext2D.prototype;
const [clips, path] = [[], { left: 0, right: 0 }];
let clip = { left: 0, right: Infinity };
const before = (name, note) => {
    const method = own[name];
    own[name] = function (...all) {
        note(this, ...all);
        return method.apply(this, all);
    };
};
before("save", () => clips.push(clip));
before("restore", () => { clip = clips.pop() ?? clip; });
before("rect", (_, x, y, width) => Object.assign(path, { left: x, right: x + width }));
before("clip", () => {
    clip = { left: Math.max(clip.left, path.left), right: Math.min(clip.right, path.right) };
});
before("clearRect", () => { window.__drawn = []; });
before("fillText", (context, text, x, y) => {
    const { canvas } = context;
    const left = x + context.getTransform().e;
    const right = left + context.measureText(text).width;
    const isWhole = left >= clip.left && right <= Math.min(clip.right, canvas.width)
        && y < canvas.height;
    window.__drawn.push({ text, isWhole });
});
"""


class NarrowTests(PageCase):
    """Views on a screen of 360 pixels."""

    def setUp(self):
        super().setUp()
        self.graph = Scene.make()
        self.page.log_in("ann")
        self.page.size(WIDTH)
        self.addCleanup(self.page.command, "Emulation.clearDeviceMetricsOverride")

    def rows_of_workers(self):
        """A graph with an attempt on each worker that has one of the names."""
        for number, name in enumerate(NAMES):
            self.cluster.start_worker(name, "--slots", "1", "--label", f"narrow={number}",
                                      log=f"narrow-{number}")
            self.addCleanup(self.cluster.end, self.cluster.workers[name])
        graph = self.api.submit("narrow", {f"on {number}": {
            "run": "true", "workers": {"narrow": str(number)}} for number in range(len(NAMES))})
        self.api.wait_status(graph["id"], "finished")
        return graph["id"]

    def drawn(self):
        """The texts that the timeline shows whole."""
        return [one["text"] for one in self.page.script("return window.__drawn")
                if one["isWhole"]]

    def test_timeline_shows_names_of_workers(self):
        graph = self.rows_of_workers()
        self.page.script(LISTEN)
        self.page.go(f"#/graphs/{graph}/timeline")
        self.page.wait_has("#longest")
        start, end = NAMES[1].split()[0], NAMES[1].split()[-1]
        self.page.wait("the first name is whole", lambda: NAMES[0] in self.drawn())
        self.page.wait("the start and the end of the second name are shown", lambda: any(
            text.startswith(start) and "…" in text and text.endswith(end)
            for text in self.drawn()))
        self.page.wait("each row has its slot", lambda: self.drawn().count("#1") == len(NAMES))

    def test_timeline_has_room_for_all_rows(self):
        self.page.script(LISTEN)
        self.page.go(f"#/graphs/{self.graph}/timeline")
        self.page.wait_has("#longest")
        rows = self.api.get(f"graphs/{self.graph}/timeline")["rows"]
        for worker in {row["worker"] for row in rows}:
            count = sum(row["worker"] == worker for row in rows)
            self.page.wait(f"{worker or 'external'} is shown {count} times", lambda: (
                self.drawn().count(worker or "external") == count))

    def test_tip_of_the_timeline_is_within_the_screen(self):
        self.page.go(f"#/graphs/{self.graph}/timeline")
        self.page.wait_row("#longest", "Operation", "approve", State="executing")
        heights = itertools.cycle(range(0, 900, 5))

        def point():
            self.page.script("""
                const canvas = document.querySelector("#timeline");
                const { right, top } = canvas.getBoundingClientRect();
                canvas.dispatchEvent(new PointerEvent("pointermove", {
                    clientX: right - 12, clientY: top + arguments[0] }));""", next(heights))
            return self.page.has("#timeline-tip")
        # The bar of an operation that runs reaches the right edge.
        self.page.wait("a bar at the right edge is found", point)
        wide = self.page.script("return document.documentElement.scrollWidth - innerWidth")
        self.assertLessEqual(wide, 0, "the page is wider than the screen")

    def assert_no_raw_dates(self):
        """Dates are shown as `2026-11-26 17:03:25`, not as `2026-11-26T17:03:25Z`."""
        shown = self.page.script("return document.querySelector('#main').innerText")
        self.assertNotRegex(shown, r"\d-\d\dT\d")

    def test_triggers_show_dates_as_other_views_do(self):
        self.api.add_trigger("each second", {"a": {"operation": "nothing"}}, on={"every": "1s"})
        self.addCleanup(self.api.ask, "DELETE", "triggers/each%20second")
        self.page.go("#/triggers/nightly")
        self.page.wait_has("#ticks")
        ticks = self.api.get("triggers/nightly/next?limit=5")["ticks"]
        self.assertEqual([row["Time of the trigger"] for row in self.page.rows("#ticks")],
                         [f"{tick['local'][:10]} {tick['local'][11:19]} {tick['local'][19:]}"
                          for tick in ticks])
        self.assert_no_raw_dates()
        self.page.go("#/triggers/each%20second")
        self.page.wait_row("#history", "Firing", "1")
        self.assert_no_raw_dates()
        self.page.go("#/triggers")
        self.page.wait_row("#triggers", "Trigger", "each second")
        self.assert_no_raw_dates()
