"""Parsl: its HighThroughputExecutor with a worker process for each slot.

Dependencies are the futures of other calls.
"""
import logging
import time

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider


@parsl.python_app
def operation(seconds, inputs=()):
    if seconds > 0:
        import time
        time.sleep(seconds)


class System:
    def __init__(self, setup):
        self.setup = setup

    def prepare(self):
        logging.disable(logging.CRITICAL)
        executor = HighThroughputExecutor(
            label="peers", address="127.0.0.1", loopback_address="127.0.0.1", encrypted=False,
            max_workers_per_node=self.setup.slots, cores_per_worker=0.01,
            provider=LocalProvider(init_blocks=1, min_blocks=1, max_blocks=1),
        )
        parsl.load(Config(
            executors=[executor], run_dir=str(self.setup.folder), strategy="none",
            initialize_logging=False, usage_tracking=0,
        ))

    def run(self, graph):
        started = time.perf_counter()
        futures = []
        for seconds, before in graph:
            futures.append(operation(seconds, inputs=[futures[one] for one in before]))
        for future in futures:
            future.result()
        return time.perf_counter() - started

    def stop(self):
        parsl.dfk().cleanup()
