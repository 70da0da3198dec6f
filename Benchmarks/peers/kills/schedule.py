"""The graphs and the kills of a run. Both depend on the seed and on nothing else."""
import dataclasses
import random

# A graph every so many seconds: five layers of four operations, which keep the four slots busy for
# some 0.6 s. So half of the time is left for what a kill holds up, and for slow machines.
PACE = 1.5
LAYERS, WIDTH = 5, 4
SHORTEST, LONGEST = 0.05, 0.2
# From a start to the next kill, in seconds.
GAPS = (15, 21)
# The first kill comes when everything runs, and none comes in the last seconds.
QUIET_START, QUIET_END = 8, 8
WORKERS = 2

# What dies at once with SIGKILL.
KINDS = {
    "machine": "a worker with all its processes",
    "absent": "a worker with all its processes, for long",
    "process": "only the main process of a worker",
    "coordinator": "the coordinator",
    "broker": "the broker",
}
# When it is started again, in seconds: all but one kind as soon as a supervisor would.
DOWN = {kind: 1 for kind in KINDS} | {"absent": 45}


@dataclasses.dataclass
class Kill:
    """A kill, in seconds after the first graph. `worker` is for the kinds that need one."""

    at: float
    kind: str
    worker: int


@dataclasses.dataclass
class Graph:
    """Operations in an order in which dependencies come first: name, seconds, dependencies."""

    at: float
    name: str
    operations: list


def kills(seed, seconds):
    """Kills of all kinds in turn, each turn in another order."""
    source = random.Random(f"kills {seed}")
    result, order, at = [], [], QUIET_START
    while True:
        if not order:
            order = source.sample(list(KINDS), len(KINDS))
        kind = order.pop()
        if at + DOWN[kind] > seconds - QUIET_END:
            return result
        result.append(Kill(at, kind, source.randrange(WORKERS)))
        at += DOWN[kind] + source.uniform(*GAPS)


def graphs(seed, seconds):
    """Layered graphs; every operation depends on two of the layer before."""
    source = random.Random(f"graphs {seed}")
    result = []
    for number in range(int(seconds / PACE)):
        operations = []
        for index in range(LAYERS * WIDTH):
            layer = [f"{number}.{one}" for one in range(index - index % WIDTH - WIDTH,
                                                        index - index % WIDTH)]
            before = source.sample(layer, 2) if index >= WIDTH else []
            operations.append((f"{number}.{index}", source.uniform(SHORTEST, LONGEST), before))
        result.append(Graph(number * PACE, str(number), operations))
    return result
