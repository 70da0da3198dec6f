"""dramatiq on RabbitMQ: two worker processes, whose threads make up the slots.

dramatiq knows no graph, and its results need another server: the worker sends a message at the
end of an operation, and the client sends the operations that it releases.
"""
import os
import pathlib
import subprocess
import sys
import threading
import time

import dramatiq
import pika
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from workloads import Progress

# The client and the workers both import this module.
URL = os.environ["PEERS_BROKER"]
# Queues of their own for each session: what a failed one leaves behind disturbs no other.
QUEUE = f"peers-dramatiq-{os.environ['PEERS_SESSION']}"
ENDS = f"{QUEUE}-ends"


class Ends(dramatiq.Middleware):
    """Sends the id of each message whose operation has ended, on a channel of each thread."""

    def __init__(self):
        self.local = threading.local()

    def after_process_message(self, broker, message, *, result=None, exception=None):
        if not hasattr(self.local, "channel"):
            connection = pika.BlockingConnection(pika.URLParameters(URL))
            self.local.channel = connection.channel()
        text = message.message_id if exception is None else f"failed: {exception}"
        self.local.channel.basic_publish("", ENDS, text.encode())


dramatiq.set_broker(RabbitmqBroker(url=URL, middleware=[Ends()]))


@dramatiq.actor(queue_name=QUEUE)
def operation(seconds):
    if seconds > 0:
        time.sleep(seconds)


class System:
    def __init__(self, setup):
        self.setup = setup
        self.workers = None
        self.channel = None

    def prepare(self):
        connection = pika.BlockingConnection(pika.URLParameters(URL))
        self.channel = connection.channel()
        self.channel.queue_declare(ENDS)
        program = pathlib.Path(sys.executable).with_name("dramatiq")
        command = [program, "systems.dramatiq", "--processes", "2", "--threads",
                   str(self.setup.slots // 2)]
        with (self.setup.folder / "worker.log").open("w") as log:
            self.workers = subprocess.Popen(command, stdout=log, stderr=log)

    def run(self, graph):
        progress, sent = Progress(graph), {}
        started = time.perf_counter()

        def send(indices):
            for index in indices:
                sent[operation.send(graph[index][0]).message_id] = index

        send(progress.first())
        for _, _, body in self.channel.consume(ENDS, auto_ack=True, inactivity_timeout=60):
            if body is None:
                raise RuntimeError("no operation ended for 60 s")
            if body.startswith(b"failed"):
                raise RuntimeError(body.decode())
            send(progress.finish(sent.pop(body.decode())))
            if progress.unfinished == 0:
                break
        seconds = time.perf_counter() - started
        self.channel.cancel()
        return seconds

    def stop(self):
        self.workers.terminate()
        self.workers.wait(timeout=30)
