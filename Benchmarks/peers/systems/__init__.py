"""The systems. Each module has a class `System`:

    System(setup)     keeps what it needs; see `Setup`
    prepare()         starts servers and workers
    run(graph)        runs a graph, and gives the seconds that it took
    stop()            ends everything that prepare started
"""
import dataclasses
import importlib
import pathlib


@dataclasses.dataclass
class Setup:
    """What a system is started with."""

    slots: int
    folder: pathlib.Path
    broker: str
    binaries: pathlib.Path
    options: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Entry:
    """A row of the tables."""

    title: str
    module: str
    # What an operation is: a "function" or a "process".
    kind: str
    # Operations in a graph of independent ones and in a layered one, and links in a chain: so many
    # that a run takes about a second.
    many: int
    links: int
    is_floor: bool = False
    options: dict = dataclasses.field(default_factory=dict)
    package: str | None = None
    # Whether it listens on all interfaces, whatever it is told: it gets a network of its own then.
    is_isolated: bool = False

    def system(self, setup):
        setup.options = self.options
        return importlib.import_module(f"systems.{self.module}").System(setup)


PROCESSES = {"processes": True}
LOCAL = {"local": True}

SYSTEMS = {
    "pipe-floor": Entry(
        "AMQP floor", "floors", "function", 20_000, 2_000, True),
    "operon": Entry("Operon over RabbitMQ", "operon", "function", 20_000, 1_000),
    "operon-local": Entry(
        "Operon in one process", "operon", "function", 20_000, 1_000, options=LOCAL),
    "celery": Entry("Celery", "celery", "function", 800, 300, package="celery"),
    "dramatiq": Entry("dramatiq", "dramatiq", "function", 3_000, 500, package="dramatiq"),
    "dask": Entry("Dask", "dask", "function", 1_000, 100, package="distributed"),
    "ray": Entry("Ray", "ray", "function", 1_500, 300, package="ray", is_isolated=True),
    "parsl": Entry("Parsl", "parsl", "function", 1_000, 300, package="parsl"),
    "spawn-floor": Entry(
        "Spawn floor", "floors", "process", 1_000, 0, True,
        options={"spawn": True}),
    "operon-processes": Entry(
        "Operon over RabbitMQ", "operon", "process", 1_000, 300, options=PROCESSES),
    "operon-local-processes": Entry(
        "Operon in one process", "operon", "process", 1_000, 300, options=PROCESSES | LOCAL),
    "hyperqueue": Entry(
        "HyperQueue", "hyperqueue", "process", 500, 25, package="hyperqueue", is_isolated=True),
    "ninja": Entry("ninja", "ninja", "process", 1_000, 300, package="ninja"),
}

# The rows that others are compared with, for each kind of operation.
REFERENCES = {"function": "operon", "process": "operon-processes"}
