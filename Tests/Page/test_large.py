"""A graph of 100,000 operations: how long each view takes, and how much memory."""

import json
import time

from .browser import hook
from .case import PageCase

COUNT = 100_000
LAYERS = 50


def lines():
    """A graph in JSON Lines: layers of operations that are held back, and some that run."""
    yield json.dumps({"name": "large", "queues": {"large": {"isSuspended": True}},
                      "defaults": {"queue": "large"}})
    width = COUNT // LAYERS
    for number in range(40):
        yield json.dumps({"name": f"first/{number}", "run": "true", "queue": "default"})
    for number in range(COUNT - 40):
        layer, place = divmod(number, width)
        dependencies = [f"layer{layer - 1}/{place}", f"layer{layer - 1}/{(place + 1) % width}"] \
            if layer else [f"first/{place % 40}"]
        yield json.dumps({"name": f"layer{layer}/{place}", "run": "true",
                          "dependencies": dependencies})


class LargeTests(PageCase):
    """Nothing is asserted of the times but that everything appears within 60 s."""

    def timed(self, what, route, selector):
        """Opens a view in a fresh document, and prints how long it took."""
        self.page.open("#/cluster")
        self.page.wait_has("#cluster-facts")
        start = time.monotonic()
        self.page.go(route)
        self.page.wait_has(selector)
        seconds = time.monotonic() - start
        print(f"    large: {what} after {seconds:.2f} s, heap {self.page.heap():.1f} MiB",
              flush=True)

    def test_100000_operations(self):
        start = time.monotonic()
        graph = self.api.ask("POST", "graphs", "\n".join(lines()), "application/jsonl")["id"]
        print(f"    large: submitted after {time.monotonic() - start:.2f} s", flush=True)
        self.page.log_in("ann")
        route = f"#/graphs/{graph}"
        self.timed("list of graphs", "#/graphs", f'#graphs a[href="{route}"]')
        self.timed("overview", route, "#operations tbody tr:nth-child(50)")
        self.timed("operations", f"{route}/operations", "#operations tbody tr:nth-child(200)")
        self.timed("an operation", f"{route}/operations/layer20%2F7", "#explain .reasons")
        self.timed("queue", "#/queues/large", "#operations tbody tr:nth-child(100)")
        self.timed("timeline", f"{route}/timeline", "#longest tbody tr")
        self.timed("picture", f"{route}/picture", "#picture .box")
        self.page.wait_text("#picture-summary", f"{COUNT} operations")
        self.assertLessEqual(len(self.page.texts("#picture .box")), 500)
        start = time.monotonic()
        for _ in range(4):
            before = self.page.attribute("#picture", "viewBox")
            self.page.click(hook("zoom-in"))
            self.page.wait("the picture is larger", lambda: (
                self.page.attribute("#picture", "viewBox") != before))
        print(f"    large: 4 zooms of the picture in {time.monotonic() - start:.2f} s", flush=True)
        # The views must not gather memory while the reader goes from one to the other.
        self.page.go("#/graphs")
        self.page.wait_has("#graphs")
        first = self.page.heap()
        for _ in range(2):
            for view, selector in (("", "#operations"), ("/timeline", "#longest"),
                                   ("/picture", "#picture .box")):
                self.page.go(route + view)
                self.page.wait_has(selector)
        self.page.go("#/graphs")
        self.page.wait_has("#graphs")
        last = self.page.heap()
        print(f"    large: heap {first:.1f} MiB, after 6 more views {last:.1f} MiB", flush=True)
        self.assertLess(last, first + 30, "the page gathers memory")
        self.api.post(f"graphs/{graph}/cancel")
