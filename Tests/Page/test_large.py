"""Graphs of 100,000 operations and of a million: how long each view takes, and how much memory."""

import json
import statistics
import time

from .browser import hook
from .case import PageCase, World

COUNT, MILLION = 100_000, 1_000_000
LAYERS = 50

# The resident memory of the tab in MB. About 150 MB of it are the browser itself.
MEMORY_MAX = 300
# A canvas that has been drawn. The table below it is empty where no attempt can be told apart.
DRAWN = "#timeline[width]"
# With --limits: the views whose opening is measured, and how many seconds it may take.
LIMITS = (("overview", "", "#operations tbody tr:nth-child(50)", 1),
          ("picture", "/picture", "#picture .box", 2),
          ("timeline", "/timeline", DRAWN, 2))
OPENINGS = 3
# The coordinator keeps what it has read for the pictures and timelines of so many graphs.
PLANS_KEPT = 4


def lines(count):
    """A graph in JSON Lines: layers of operations that are held back, and some that run."""
    yield json.dumps({"name": "large", "queues": {"large": {"isSuspended": True}},
                      "defaults": {"queue": "large"}})
    width = count // LAYERS
    for number in range(40):
        yield json.dumps({"name": f"first/{number}", "run": "true", "queue": "default"})
    for number in range(count - 40):
        layer, place = divmod(number, width)
        dependencies = [f"layer{layer - 1}/{place}", f"layer{layer - 1}/{(place + 1) % width}"] \
            if layer else [f"first/{place % 40}"]
        yield json.dumps({"name": f"layer{layer}/{place}", "operation": "nothing",
                          "dependencies": dependencies})


class LargeTests(PageCase):
    """Everything appears within 60 s and with bounded memory; --limits asserts shorter times."""

    def submit(self, count=COUNT):
        """Submits a graph, logs in, and returns the address of the graph's overview."""
        text = "\n".join(lines(count))
        start = time.monotonic()
        graph = self.api.ask("POST", "graphs", text, "application/jsonl")["id"]
        self.addCleanup(self.api.post, f"graphs/{graph}/cancel")
        self.tell(f"submitted after {time.monotonic() - start:.2f} s")
        self.page.log_in("ann")
        return f"#/graphs/{graph}"

    def tell(self, text):
        """Prints a line."""
        print(f"    large: {text}", flush=True)

    def timed(self, what, route, selector):
        """Opens a view in a fresh document, and prints how long it took."""
        self.page.open("#/cluster")
        self.page.wait_has("#cluster-facts")
        start = time.monotonic()
        self.page.go(route)
        self.page.wait_has(selector)
        seconds = time.monotonic() - start
        self.tell(f"{what} after {seconds:.2f} s, heap {self.page.heap():.1f} MiB")

    def check_memory(self):
        """The memory of the tab, before anything has collected garbage."""
        size = self.page.memory()
        self.tell(f"memory of the tab {size:.0f} MB")
        self.assertLess(size, MEMORY_MAX, "the tab takes too much memory")

    def test_100000_operations(self):
        route = self.submit()
        self.timed("list of graphs", "#/graphs", f'#graphs a[href="{route}"]')
        self.timed("overview", route, "#operations tbody tr:nth-child(50)")
        self.timed("operations", f"{route}/operations", "#operations tbody tr:nth-child(200)")
        self.timed("an operation", f"{route}/operations/layer20%2F7", "#explain .reasons")
        self.timed("queue", "#/queues/large", "#operations tbody tr:nth-child(100)")
        self.timed("timeline", f"{route}/timeline", DRAWN)
        self.timed("picture", f"{route}/picture", "#picture .box")
        self.page.wait_text("#picture-summary", f"{COUNT} operations")
        self.assertLessEqual(len(self.page.texts("#picture .box")), 500)
        self.zoom()
        self.open_box()
        self.check_memory()
        # The views must not gather memory while the reader goes from one to the other.
        self.page.go("#/graphs")
        self.page.wait_has("#graphs")
        first = self.page.heap()
        self.go_through(route)
        self.go_through(route)
        self.check_memory()
        last = self.page.heap()
        self.tell(f"heap {first:.1f} MiB, after two more rounds {last:.1f} MiB")
        self.assertLess(last, first + 30, "the page gathers memory")

    def zoom(self):
        """Zooms into the picture."""
        start = time.monotonic()
        for _ in range(4):
            before = self.page.attribute("#picture", "viewBox")
            self.page.click(hook("zoom-in"))
            self.page.wait("the picture is larger", lambda: (
                self.page.attribute("#picture", "viewBox") != before))
        self.tell(f"4 zooms of the picture in {time.monotonic() - start:.2f} s")

    def open_box(self):
        """Goes from a box of the picture to the operations for which it stands."""
        self.page.click(hook("zoom-all"))
        self.page.click("#picture .box:nth-child(3)")
        self.page.wait_text(hook("boxed"), "layer 3")
        self.page.wait("the second layer that was held back is listed", lambda: all(
            row["Operation"].startswith("layer1/") for row in self.page.rows("#operations"))
            and len(self.page.rows("#operations")) == 200)
        self.page.click(f"{hook('boxed')} a")
        self.page.wait_row("#operations", "Operation", "first/0")
        self.page.driver.back()
        self.page.driver.back()
        self.page.wait_has("#picture .box")

    def go_through(self, route):
        """Goes to each view that has the graph, within one document, and back to the list."""
        for view, selector in (
                (route, "#operations"), (f"{route}/operations", "#operations"),
                (f"{route}/operations/layer20%2F7", "#operation-facts"),
                (f"{route}/timeline", DRAWN), (f"{route}/picture", "#picture .box"),
                ("#/queues/large", "#queue-facts"), ("#/graphs", "#graphs")):
            self.page.go(view)
            self.page.wait_has(selector)

    def test_limits_of_100000_operations(self):
        if not World.limits:
            self.skipTest("only with --limits")
        route = self.submit()
        # A graph that has finished has an attempt of each operation to show.
        self.api.ask("POST", "queues/large/resume")
        self.api.wait_status(route.rpartition("/")[2], "finished", 600)
        others = [self.api.submit(f"beside the large one {number}", {
            "a": {"operation": "nothing"}})["id"] for number in range(PLANS_KEPT)]
        slow = []
        for what, view, selector, limit in LIMITS:
            times = [self.opening(route + view, selector, others) for _ in range(OPENINGS)]
            middle = statistics.median(times)
            self.tell(f"{what} opens in {middle:.2f} s of {limit} s: "
                      + ", ".join(f"{seconds:.2f}" for seconds in times))
            if middle > limit:
                slow.append(f"{what}: {middle:.2f} s")
        self.check_memory()
        self.go_through(route)
        self.check_memory()
        self.assertEqual(slow, [], "these views take longer than they may")

    def test_a_million_operations(self):
        if not World.million:
            self.skipTest("only with --million")
        route = self.submit(MILLION)
        self.views_of_a_million(route, "held back")
        self.api.ask("POST", "queues/large/resume")
        self.api.wait_status(route.rpartition("/")[2], "finished", 600)
        self.views_of_a_million(route, "finished")
        self.go_through(route)
        self.check_memory()

    def views_of_a_million(self, route, state):
        """Opens the views; the picture has a box for each layer."""
        self.timed(f"overview, {state},", route, "#operations tbody tr:nth-child(50)")
        self.timed(f"operations, {state},", f"{route}/operations",
                   "#operations tbody tr:nth-child(200)")
        self.timed(f"an operation, {state},", f"{route}/operations/layer20%2F7",
                   "#operation-facts")
        self.timed(f"timeline, {state},", f"{route}/timeline", DRAWN)
        self.timed(f"picture, {state},", f"{route}/picture", "#picture .box")
        self.page.wait_text("#picture-summary", f"{MILLION} operations")
        # The operations that run first, and the layers.
        self.assertEqual(len(self.page.texts("#picture .box")), 1 + LAYERS)
        self.zoom()
        self.check_memory()

    def opening(self, route, selector, others):
        """The seconds until an address shows its view in a fresh document, as a link in a new tab
        does. The coordinator must read the graph again: its memory is filled with other graphs."""
        for graph in others:
            self.api.get(f"graphs/{graph}/picture")
        start = time.monotonic()
        self.page.open(route)
        self.page.wait_has(selector)
        return time.monotonic() - start
