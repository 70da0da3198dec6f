"""The floors of docs/PERFORMANCE.md: the same messages or processes, but nobody who coordinates.

They know no dependencies: only independent operations, and a chain of messages.
"""
import json
import os
import subprocess


class System:
    def __init__(self, setup):
        self.setup = setup

    def prepare(self):
        pass

    def run(self, graph):
        edges = sum(len(before) for _, before in graph)
        count, slots = len(graph), self.setup.slots
        if edges == 0 and self.setup.options.get("spawn"):
            return self.floor("spawn", "--processes", count, "--slots", slots)["seconds"]
        if edges == 0:
            return self.floor("pipe", "--operations", count, "--workers", slots)["seconds"]
        return self.floor("chain", "--links", count)["microsecondsP50"] * count / 1e6

    def floor(self, *arguments):
        command = [self.setup.binaries / "FloorBenchmark", *map(str, arguments)]
        environment = dict(os.environ, OPERON_TEST_BROKER=self.setup.broker)
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout)

    def stop(self):
        pass
