"""The graphs that every system runs, and the shortest time that they can take.

A graph is a list of operations in an order in which dependencies come first. An operation is a
pair: the seconds that it takes, and the indices of its dependencies.
"""
import heapq
import json
import pathlib
import random

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDED = ROOT / "Tests" / "OperonGraphFileTests" / "Fixtures"
LAYER_WIDTH = 100

# The names of the recorded workflows in the tables, and their files.
WORKFLOWS = {
    "1000genome": "1000genome-chameleon-12ch-250k-001",
    "bwa": "bwa-chameleon-medium-001",
    "montage": "montage-chameleon-2mass-05d-001",
    "ninja-curl": "ninja-curl-7.88.1",
    "rnaseq": "rnaseq-dirt02-001",
}


def independent(count):
    return [(0.0, [])] * count


def chain(count):
    return [(0.0, [index - 1] if index > 0 else []) for index in range(count)]


def layered(count):
    """Layers of 100; every operation depends on 2 or 3 of the layer before."""
    source = random.Random(1)
    graph = []
    for index in range(count):
        start = (index // LAYER_WIDTH - 1) * LAYER_WIDTH
        before = range(start, start + LAYER_WIDTH) if start >= 0 else ()
        graph.append((0.0, source.sample(before, source.choice((2, 3))) if before else []))
    return graph


def stencil(width, rows, grain):
    """Rows of equal operations; each depends on its neighbours in the row before and on itself."""
    graph = []
    for row in range(rows):
        start = (row - 1) * width
        for column in range(width):
            near = range(max(0, column - 1), min(width, column + 2)) if row > 0 else ()
            graph.append((grain, [start + other for other in near]))
    return graph


def recorded(name):
    """A recorded workflow with its run times: a file of WfFormat 1.5."""
    text = (RECORDED / f"{WORKFLOWS[name]}.json").read_text()
    workflow = json.loads(text)["workflow"]
    parents = {one["id"]: one["parents"] for one in workflow["specification"]["tasks"]}
    times = {one["id"]: one.get("runtimeInSeconds", 0) for one in workflow["execution"]["tasks"]}
    parents = {
        name: [one for one in dict.fromkeys(before) if one in parents]
        for name, before in parents.items()
    }
    number, graph, left = {}, [], list(parents)
    while left:
        later = []
        for name in left:
            if all(one in number for one in parents[name]):
                number[name] = len(graph)
                graph.append((times.get(name, 0), [number[one] for one in parents[name]]))
            else:
                later.append(name)
        if len(later) == len(left):
            raise ValueError("the workflow has a cycle")
        left = later
    return graph


def scaled(graph, slots, seconds):
    """The graph with its times multiplied so that its bound is this many seconds."""
    factor = seconds / bound(graph, slots)
    return [(time * factor, before) for time, before in graph]


def bound(graph, slots):
    """No schedule is shorter: the longest path, or all work on all slots."""
    return max(max(paths_to_end(graph)), sum(time for time, _ in graph) / slots)


def dependents(graph):
    result = [[] for _ in graph]
    for index, (_, before) in enumerate(graph):
        for one in before:
            result[one].append(index)
    return result


def sinks(graph):
    """The operations that no other one depends on."""
    return [index for index, after in enumerate(dependents(graph)) if not after]


def paths_to_end(graph):
    """For each operation, the longest path that starts with it."""
    paths = [0.0] * len(graph)
    after = dependents(graph)
    for index in reversed(range(len(graph))):
        paths[index] = graph[index][0] + max((paths[one] for one in after[index]), default=0.0)
    return paths


def ideal(graph, slots):
    """The makespan if the longest path goes first, run times are known and nothing else counts."""
    paths, after = paths_to_end(graph), dependents(graph)
    missing = [len(before) for _, before in graph]
    ready = [(-paths[index], index) for index, count in enumerate(missing) if count == 0]
    heapq.heapify(ready)
    running, now = [], 0.0
    while ready or running:
        while ready and len(running) < slots:
            index = heapq.heappop(ready)[1]
            heapq.heappush(running, (now + graph[index][0], index))
        now, index = heapq.heappop(running)
        for one in after[index]:
            missing[one] -= 1
            if missing[one] == 0:
                heapq.heappush(ready, (-paths[one], one))
    return now


class Progress:
    """Resolves dependencies for a client whose system knows none."""

    def __init__(self, graph):
        self.after = dependents(graph)
        self.missing = [len(before) for _, before in graph]
        self.unfinished = len(graph)

    def first(self):
        """The operations that depend on no other one."""
        return [index for index, count in enumerate(self.missing) if count == 0]

    def finish(self, index):
        """Notes an end, and gives the operations that it releases."""
        self.unfinished -= 1
        released = []
        for one in self.after[index]:
            self.missing[one] -= 1
            if self.missing[one] == 0:
                released.append(one)
        return released
