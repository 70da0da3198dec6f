"""Dask: a scheduler and two worker processes, whose threads make up the slots.

The client hands over the whole graph in one call.
"""
import time

from distributed import Client, LocalCluster, wait
from workloads import sinks


def operation(seconds, *_):
    if seconds > 0:
        time.sleep(seconds)


class System:
    def __init__(self, setup):
        self.setup = setup
        self.cluster = None
        self.client = None
        self.runs = 0

    def prepare(self):
        self.cluster = LocalCluster(
            n_workers=2, threads_per_worker=self.setup.slots // 2, processes=True,
            host="127.0.0.1", dashboard_address=None, memory_limit=0, silence_logs=50,
        )
        self.client = Client(self.cluster)

    def run(self, graph):
        self.runs += 1
        keys = [f"run{self.runs}-{index}" for index in range(len(graph))]
        whole = {
            keys[index]: (operation, seconds, *[keys[one] for one in before])
            for index, (seconds, before) in enumerate(graph)
        }
        last = [keys[index] for index in sinks(graph)]
        started = time.perf_counter()
        futures = self.client.get(whole, last, sync=False)
        wait(futures)
        seconds = time.perf_counter() - started
        failed = [one for one in futures if one.status != "finished"]
        if failed:
            raise RuntimeError(f"{len(failed)} operations failed: {failed[0].exception()}")
        return seconds

    def stop(self):
        self.client.close()
        self.cluster.close()
