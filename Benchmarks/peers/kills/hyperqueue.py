"""HyperQueue: a server, and two workers with two cores each, in processes of their own.

They come from its Python package. That package starts a server and workers in one process only. So
each worker process has an idle server of its own, and its worker is led to the real one through the
link to the server that runs. `crash_limit` is the highest there is: no operation fails because its
workers were killed.

Its server keeps no journal when it is started from the package, so everything would be lost with
it. HyperQueue's program `hq` has `--journal`, but the package does not contain it. So the server is
not killed: that would be no fair setting. A worker ends when its process does, and the server sees
its connection close, so the interval of heartbeats, which the package does not let one choose, does
not matter here.
"""
import os
import pathlib
import signal
import sys

from kills.processes import Service

STEP = pathlib.Path(__file__).with_name("step.py")
CRASH_LIMIT = 65_535

os.environ["TQDM_DISABLE"] = "1"


class System:
    kinds = ("machine", "absent", "process")

    def __init__(self, setup):
        self.setup = setup
        self.server_folder = setup.folder / "server"
        self.services = []
        self.jobs = {}
        self.acknowledged = set()

    def version(self):
        import hyperqueue
        return f"HyperQueue {hyperqueue.ffi.get_version().removeprefix('v')}"

    def start(self):
        from hyperqueue import Client
        command = [sys.executable, "-m", "kills.hyperqueue"]
        self.server = Service("server", [*command, "server", self.server_folder], self.setup.folder)
        self.workers = [
            Service(f"worker{number}", [*command, "worker", self.server_folder],
                    self.setup.folder) for number in range(self.setup.workers)]
        self.services = [self.server, *self.workers]
        self.server.start()
        self.setup.until(lambda: "ready" in self.server.log.read_text())
        for one in self.workers:
            one.start()
        self.setup.until(lambda: all("ready" in one.log.read_text() for one in self.workers))
        self.client = Client(self.server_folder)

    def submit(self, graph):
        from hyperqueue import Job
        job, programs = Job(default_workdir=self.setup.folder, max_fails=None), {}
        for name, seconds, before in graph.operations:
            programs[name] = job.program(
                [sys.executable, "-I", "-S", str(STEP), str(self.setup.ledger), name,
                 f"{seconds:.3f}"], stdout=None, stderr=None,
                deps=[programs[one] for one in before], crash_limit=CRASH_LIMIT)
        self.jobs[graph.name] = self.client.submit(job)
        self.acknowledged.update(programs)

    def outcomes(self):
        """Of jobs that have ended; it waits for all, so it is asked when the ledger is complete."""
        self.client.wait_for_jobs(list(self.jobs.values()), raise_on_error=False)
        failed = {f"{name}.{number}" for name, job in self.jobs.items()
                  for number in self.client.get_failed_tasks(job)}
        return {one: "failed" if one in failed else "succeeded" for one in self.acknowledged}

    def help(self):
        for one in self.workers:
            one.kill_machine(one.family())
        for one in self.workers:
            one.start()

    def stop(self):
        for one in reversed(self.services):
            one.kill_machine(one.family())


def serve(role, server_folder):
    """The process of the server or of a worker, until it is killed."""
    import tempfile

    from hyperqueue.ffi.cluster import Cluster
    if role == "server":
        cluster = Cluster(server_folder)
    else:
        with tempfile.TemporaryDirectory() as folder:
            cluster = Cluster(folder)
            link = pathlib.Path(folder) / "hq-current"
            link.unlink()
            link.symlink_to((pathlib.Path(server_folder) / "hq-current").resolve())
            cluster.add_worker(2)
    print("ready", flush=True)
    signal.pause()


if __name__ == "__main__":
    serve(*sys.argv[1:])
