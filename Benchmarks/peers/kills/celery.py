"""Celery: two workers with two prefork processes each, over RabbitMQ.

Celery knows no general graph. The client sends an operation when the results of its dependencies
are there; it is never killed. An operation is acknowledged when the broker has confirmed its
message. The settings are those that lose the least work:

- `task_acks_late`, `task_reject_on_worker_lost`: the broker keeps a message until the task has
  ended, and gives it to another worker if the process that ran it dies.
- `worker_prefetch_multiplier` 1: a worker takes no more than it has processes for.
- `worker_cancel_long_running_tasks_on_connection_loss`: a task whose message the broker will give
  out again is stopped, so that it is not run twice.
- `worker_deduplicate_successful_tasks`: a task that comes again although its result is there is
  not run again.
- a quorum queue: durable, and on the disk before a message is confirmed. Messages are persistent.
- `confirm_publish`, and a publication is tried again until it is confirmed.
- `broker_connection_max_retries` without a bound: a worker waits for the broker for ever.
- results in a database file (SQLAlchemy, SQLite): it has no server that could be killed, and no
  result is lost with the broker.
- `worker_proc_alive_timeout` 60: a busy machine may need longer than 4 s to start a process.
- no remote control, no gossip, no mingle: none of them carries work.
"""
import os
import sys
import threading
import time

import celery
import kombu
from celery.result import AsyncResult
from kills import step
from kills.processes import Broker, Service
from workloads import Progress

# How often the client looks at the results of what it has sent.
LOOK_SECONDS = 0.1
QUEUE = "kills"

app = celery.Celery("kills", broker=os.environ.get("KILLS_BROKER"),
                    backend=os.environ.get("KILLS_RESULTS"))
app.conf.update(
    task_queues=[kombu.Queue(QUEUE, kombu.Exchange(QUEUE, durable=True), QUEUE, durable=True,
                             queue_arguments={"x-queue-type": "quorum"})],
    task_default_queue=QUEUE,
    task_default_exchange=QUEUE,
    task_default_routing_key=QUEUE,
    task_default_delivery_mode="persistent",
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    worker_cancel_long_running_tasks_on_connection_loss=True,
    worker_deduplicate_successful_tasks=True,
    worker_enable_remote_control=False,
    worker_proc_alive_timeout=60,
    broker_transport_options={"confirm_publish": True},
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    result_backend_always_retry=True,
    task_publish_retry=True,
    task_publish_retry_policy={
        "max_retries": 20, "interval_start": 0, "interval_step": 0.2, "interval_max": 1},
)


@app.task
def operation(name, seconds):
    step.run(os.environ["KILLS_LEDGER"], name, seconds)


class System:
    # There is no coordinator: the client resolves the dependencies.
    kinds = ("machine", "absent", "process", "broker")

    def __init__(self, setup):
        self.setup = setup
        self.broker = Broker(setup.folder)
        self.acknowledged = set()
        self.workers = []
        self.states = {}
        self.graphs = []
        self.lock = threading.Lock()
        self.has_stopped = threading.Event()
        self.client = threading.Thread(target=self.resolve, daemon=True)

    def version(self):
        return f"Celery {celery.__version__}"

    def start(self):
        self.broker.start()
        environment = {
            "KILLS_BROKER": self.broker.url(),
            "KILLS_RESULTS": f"db+sqlite:///{self.setup.folder}/results.db?timeout=30",
            "KILLS_LEDGER": str(self.setup.ledger)}
        app.conf.broker_url = environment["KILLS_BROKER"]
        app.conf.result_backend = environment["KILLS_RESULTS"]
        self.workers = [Service(f"worker{number}", [
            sys.executable, "-m", "celery", "-A", "kills.celery", "worker", "--pool", "prefork",
            "--concurrency", "2", "--hostname", f"worker{number}@localhost", "--without-gossip",
            "--without-mingle", "--loglevel", "INFO",
        ], self.setup.folder, environment) for number in range(self.setup.workers)]
        for one in self.workers:
            one.start()
        self.setup.until(lambda: all(" ready." in one.log.read_text() for one in self.workers))
        self.client.start()

    def submit(self, graph):
        """Gives it to the client, which sends its first operations."""
        names = [name for name, _, _ in graph.operations]
        index = {name: number for number, name in enumerate(names)}
        progress = Progress([(seconds, [index[one] for one in before])
                             for _, seconds, before in graph.operations])
        with self.lock:
            self.graphs.append((graph, progress, progress.first(), {}))

    def resolve(self):
        """The client: sends what may start, and looks at what has ended."""
        while not self.has_stopped.wait(LOOK_SECONDS):
            with self.lock:
                graphs = list(self.graphs)
            for graph, progress, ready, sent in graphs:
                while ready:
                    number = ready.pop()
                    name, seconds, _ = graph.operations[number]
                    sent[number] = self.send(name, seconds)
                    self.acknowledged.add(name)
                for number, result in list(sent.items()):
                    state = result.state
                    if state not in celery.states.READY_STATES:
                        continue
                    del sent[number]
                    name = graph.operations[number][0]
                    self.states[name] = "succeeded" if state == "SUCCESS" else state
                    if state == "SUCCESS":
                        ready += progress.finish(number)
            with self.lock:
                self.graphs = [one for one in self.graphs if one[1].unfinished > 0]

    def send(self, name, seconds):
        """Returns when the broker has confirmed it; with one id, however often it is tried."""
        identifier = celery.utils.uuid()
        while True:
            try:
                operation.apply_async((name, seconds), task_id=identifier)
                return AsyncResult(identifier, app=app)
            except (operation.OperationalError, OSError) as error:
                print(f"sent again after {error!r}", flush=True)
                time.sleep(0.2)

    def outcomes(self):
        return dict(self.states)

    def help(self):
        """What a person would do if a run hung: start the workers again."""
        for one in self.workers:
            one.kill_machine(one.family())
        for one in self.workers:
            one.start()

    def stop(self):
        self.has_stopped.set()
        if self.client.is_alive():
            self.client.join(timeout=30)
        for one in self.workers:
            one.stop()
        self.broker.stop()
