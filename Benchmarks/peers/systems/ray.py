"""Ray: one node on this machine with a processor for each slot, and one remote function.

Dependencies are references to the results of other calls.
"""
import os
import time

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_DEDUP_LOGS="0")

import ray  # noqa: E402
from workloads import sinks  # noqa: E402


@ray.remote
def operation(seconds, *_):
    if seconds > 0:
        time.sleep(seconds)


class System:
    def __init__(self, setup):
        self.setup = setup

    def prepare(self):
        ray.init(
            num_cpus=self.setup.slots, include_dashboard=False, log_to_driver=False,
            logging_level="ERROR", object_store_memory=200 << 20, _node_ip_address="127.0.0.1",
            _temp_dir=str(self.setup.folder),
        )

    def run(self, graph):
        last = sinks(graph)
        started = time.perf_counter()
        references = []
        for seconds, before in graph:
            references.append(operation.remote(seconds, *[references[one] for one in before]))
        ray.get([references[index] for index in last])
        return time.perf_counter() - started

    def stop(self):
        ray.shutdown()
