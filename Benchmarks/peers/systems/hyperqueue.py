"""HyperQueue: its server and a worker in this process, from its Python package.

Each operation is a process. The Python client looks once a second whether all have ended, which is
too coarse. So one more operation depends on the last ones and makes a file, and the clock stops
when the file is there.
"""
import os
import time

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
from workloads import sinks

os.environ["TQDM_DISABLE"] = "1"


class System:
    def __init__(self, setup):
        self.setup = setup
        self.cluster = None
        self.client = None
        self.end = setup.folder / "end"

    def prepare(self):
        self.cluster = LocalCluster(
            server_dir=str(self.setup.folder), worker_config=WorkerConfig(cores=self.setup.slots))
        self.client = self.cluster.client()

    def run(self, graph):
        self.end.unlink(missing_ok=True)
        job = Job(default_workdir=self.setup.folder, max_fails=0)
        programs = []
        for seconds, before in graph:
            command = ["sleep", f"{seconds:.6f}"] if seconds > 0 else ["/bin/true"]
            programs.append(job.program(
                command, stdout=None, stderr=None, deps=[programs[one] for one in before]))
        job.program(["touch", str(self.end)], stdout=None, stderr=None,
                    deps=[programs[index] for index in sinks(graph)])
        started = time.perf_counter()
        submitted = self.client.submit(job)
        while not self.end.exists():
            if time.perf_counter() > started + 90:
                raise RuntimeError("the run did not end within 90 s")
            time.sleep(0.0005)
        seconds = time.perf_counter() - started
        self.client.wait_for_jobs([submitted])
        self.client.forget(submitted)
        return seconds

    def stop(self):
        self.cluster.stop()
