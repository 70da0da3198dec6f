"""Celery on RabbitMQ: a worker of prefork processes, and a result for each operation over `rpc://`.

Celery knows no general graph: the client sends an operation when the results of its dependencies
are back. Messages are transient, as Operon's are.
"""
import os
import subprocess
import sys
import time

import celery
from workloads import Progress

# The client and the worker both import this module.
URL = os.environ["PEERS_BROKER"]
app = celery.Celery("peers", broker=URL, backend="rpc://")
app.conf.update(
    # A queue of its own for each session: what a failed one leaves behind disturbs no other.
    task_default_queue=f"peers-celery-{os.environ['PEERS_SESSION']}",
    task_default_delivery_mode="transient",
    result_persistent=False,
    broker_connection_retry_on_startup=True,
)


@app.task
def operation(seconds):
    if seconds > 0:
        time.sleep(seconds)


class System:
    def __init__(self, setup):
        self.setup = setup
        self.worker = None

    def prepare(self):
        command = [sys.executable, "-m", "celery", "-A", "systems.celery", "worker", "--pool",
                   "prefork", "--concurrency", str(self.setup.slots), "--without-gossip",
                   "--without-mingle", "--without-heartbeat", "--loglevel", "ERROR"]
        with (self.setup.folder / "worker.log").open("w") as log:
            self.worker = subprocess.Popen(command, stdout=log, stderr=log)

    def run(self, graph):
        progress = Progress(graph)
        started = time.perf_counter()
        with app.producer_or_acquire() as producer:
            def send(index):
                result = operation.apply_async((graph[index][0],), producer=producer)
                result.then(lambda _: finish(index), on_error=fail)

            def finish(index):
                for released in progress.finish(index):
                    send(released)

            for index in progress.first():
                send(index)
            while progress.unfinished > 0:
                app.backend.result_consumer.drain_events(timeout=30)
        return time.perf_counter() - started

    def stop(self):
        self.worker.terminate()
        self.worker.wait(timeout=30)


def fail(result):
    raise RuntimeError(f"an operation failed: {result}")
