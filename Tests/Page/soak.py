"""The page stays open for minutes while graphs come and go: what it takes must not grow.

There is a window for the list of graphs, which stays as it is, and one for each of three views of a
graph. These follow a graph that runs for the greater part of a minute, and then go to the next one.
Once a minute, when that graph has finished, all windows are measured: each shows the same then as a
minute before.
"""

import math
import statistics
import sys
import threading
import time

from .api import Api, ApiError
from .case import World
from .memory import renderers, resident

# The first minutes fill the caches of the browser and the list of graphs.
WARM_UP = 1
LEAST_MINUTES = WARM_UP + 3
# Seconds between two small graphs.
PACE = 1
# The finished graphs of so many seconds are kept: the graph that the windows follow stays until they
# go to the next one, and the list, which shows fewer, is always full.
KEPT_SECONDS = 60
# The graph that the windows follow: each lane takes a slot for about 50 s.
LANES, LANE_LENGTH = 4, 45
# What is measured, and how much of it may come on top of a growth by a fifth: heap in MiB, nodes
# of documents, listeners.
MEASURES = {"heap": 1, "nodes": 100, "listeners": 20}
# The resident memory of the processes that render all windows may grow by as many MB besides.
TABS_MORE = 20
GROWTH_MAX = 1.2

# What shows in each window that the graph that it follows has finished; in the list, that graph or a
# later one: those that finish after it may fill the list.
WINDOWS = {
    "list": ("#/graphs", """
        return [...document.querySelectorAll("#graphs tbody tr")].some((row) => (
            parseInt(row.textContent) >= arguments[0] && row.textContent.includes("finished")))
    """),
    "overview": ("#/graphs/{graph}", """
        return document.querySelector("[data-test=count-succeeded] b")?.textContent
            === String(arguments[1]) && document.querySelector("#operations") !== null
    """),
    "picture": ("#/graphs/{graph}/picture", """
        return document.querySelectorAll("#picture .box[data-state=succeeded]").length
            === arguments[1]
    """),
    "timeline": ("#/graphs/{graph}/timeline", """
        return document.querySelector(".heading .state")?.dataset.state === "finished"
            && document.querySelector("#timeline[width]") !== null
            && document.querySelectorAll("#longest [data-state=succeeded]").length === 20
    """),
}


class Load(threading.Thread):
    """Submits small graphs at a pace until it is stopped."""

    def __init__(self, api, pace):
        super().__init__(daemon=True)
        self.api = api
        self.pace = pace
        self.stopped = threading.Event()
        self.submitted = 0
        self.error = None

    def run(self):
        operations = {"first": {"run": "echo started"}, "second": {
            "forEach": list(range(8)), "operation": "nothing", "dependencies": ["first"]}}
        try:
            while not self.stopped.wait(self.pace):
                self.submitted += 1
                self.api.submit(f"small {self.submitted}", operations)
        except (ApiError, OSError) as error:
            self.error = error

    def stop(self):
        """Ends it, and fails if it could not go on before."""
        self.stopped.set()
        self.join()
        if self.error:
            sys.exit(f"the coordinator took no more graphs: {self.error}")


def lanes():
    """The operations of a graph that the windows follow."""
    return {f"lane {lane}/{place}": {
        "run": f"echo {place}; sleep 1",
        "dependencies": [f"lane {lane}/{place - 1}"] if place else []}
        for lane in range(LANES) for place in range(LANE_LENGTH)}


class Windows:
    """The windows, by name. Each has a document of its own, which stays."""

    def __init__(self, page):
        self.page = page
        page.log_in("ann")
        self.handles = {}
        for number, name in enumerate(WINDOWS):
            if number:
                # A tab behind another one would be hidden, and ask for nothing.
                page.driver.switch_to.new_window("window")
            self.handles[name] = page.driver.current_window_handle
            page.open()
            page.command("Performance.enable")
            page.wait("the page has started", lambda: page.has("#graphs, [data-test=graphs-empty]"))
            page.script("""
                window.__hidden = document.hidden;
                document.addEventListener("visibilitychange", () => { window.__hidden = true; });
            """)

    def show(self, name):
        """Goes to a window."""
        self.page.driver.switch_to.window(self.handles[name])

    def follow(self, graph):
        """Lets all windows follow a graph."""
        for name, (route, _) in WINDOWS.items():
            self.show(name)
            self.page.go(route.format(graph=graph))

    def wait_end(self, graph, operations):
        """Waits until each window shows the end of the graph."""
        for name, (_, is_shown) in WINDOWS.items():
            self.show(name)
            self.page.wait(f"{name} shows the end of graph {graph}", lambda: (
                self.page.script(is_shown, graph, operations)))

    def measure(self):
        """What each window takes, garbage collected, and the memory of their processes in MB."""
        sample = {name: self.measure_one(name) for name in WINDOWS}
        sample["tabs"] = sum(renderers(self.page.driver.service.process.pid))
        return sample

    def measure_one(self, name):
        """What a window takes, garbage collected."""
        self.show(name)
        # What the first collection sets free may have been all that held something else.
        for _ in range(2):
            self.page.command("HeapProfiler.collectGarbage")
        values = {metric["name"]: metric["value"]
                  for metric in self.page.command("Performance.getMetrics")["metrics"]}
        return {"heap": values["JSHeapUsedSize"] / 2 ** 20, "nodes": values["Nodes"],
                "listeners": values["JSEventListeners"]}

    def check(self):
        """Fails if a page was loaded again, was hidden, or complained."""
        for name in WINDOWS:
            self.show(name)
            if self.page.script("return window.__hidden") is not False:
                sys.exit(f"the page of the {name} was loaded again, or was hidden")
            if complaints := self.page.complaints():
                sys.exit(f"the page of the {name} complained: {complaints}")


def line(minute, sample, load):
    """A minute in words."""
    parts = [f"{measure} " + " ".join(f"{sample[name][measure]:.{digits}f}" for name in WINDOWS)
             for measure, digits in (("heap", 2), ("nodes", 0), ("listeners", 0))]
    memory = resident(World.cluster.coordinator.pid)
    return (f"minute {minute}: " + ", ".join(parts) + f"; tabs {sample['tabs']:.0f} MB, "
            f"coordinator {memory:.0f} MB, {load.submitted} small graphs")


def grown(samples):
    """What has grown from the first third of the samples to the last, in sentences."""
    third = len(samples) // 3
    series = {f"{measure} of the {name}": ([sample[name][measure] for sample in samples], more)
              for name in WINDOWS for measure, more in MEASURES.items()}
    series["memory of the tabs"] = ([sample["tabs"] for sample in samples], TABS_MORE)
    found = []
    for what, (values, more) in series.items():
        first, last = statistics.median(values[:third]), statistics.median(values[-third:])
        print(f"{what}: from {first:.2f} to {last:.2f}", flush=True)
        if last > first * GROWTH_MAX + more:
            found.append(f"the {what} grew from {first:.2f} to {last:.2f}")
    return found


def keep(pace):
    """How many finished graphs the coordinator keeps."""
    return max(KEPT_SECONDS, math.ceil(KEPT_SECONDS / pace))


def soak(minutes, pace):
    """The whole run; returns the status of the program."""
    windows = Windows(World.browser)
    load = Load(Api(World.cluster.url, World.cluster.api.token), pace)
    operations = lanes()
    samples = []
    print(f"heap in MiB, nodes and listeners of: {', '.join(WINDOWS)}", flush=True)
    load.start()
    start = time.monotonic()
    for minute in range(1, minutes + 1):
        graph = World.cluster.api.submit(f"minute {minute}", operations)["id"]
        windows.follow(graph)
        World.cluster.api.wait_status(graph, "finished", 120)
        windows.wait_end(graph, len(operations))
        samples.append(windows.measure())
        print(line(minute, samples[-1], load), flush=True)
        # The pace of the minutes.
        load.stopped.wait(max(0, start + 60 * minute - time.monotonic()))
    load.stop()
    windows.check()
    found = grown(samples[WARM_UP:])
    for text in found:
        print(text, file=sys.stderr)
    return 1 if found else 0
