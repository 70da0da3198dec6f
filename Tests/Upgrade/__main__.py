"""A cluster that is upgraded while it works: worker after worker, then the coordinator, as
docs/DEPLOY.md says. scripts/check-upgrade starts the broker and says where the programs are."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

# Operations in each layer of the graph, and slots of each worker.
WIDTH = 6
SLOTS = 4
# Seconds until what is awaited must have come.
PATIENCE = 120

# The first layer runs on the earlier programs, the last one on the later ones. A gate holds each of
# the others until a part of the cluster has been replaced.
GRAPH = f"""
name: night
operations:
  first: {{ forEach: 1..{WIDTH}, run: 'echo first-${{item}} >>ran; sleep 1' }}
  number: {{ run: 'echo number >>ran; echo 42 >"$OPERON_OUTPUT"' }}
  flaky: {{ run: 'echo flaky >>ran; test "$OPERON_ATTEMPT" -gt 1', retry: 1 }}
  gate1: {{ external: true, dependencies: [first, number, flaky] }}
  second: {{ forEach: 1..{WIDTH}, run: 'echo second-${{item}} >>ran; sleep 1', dependencies: [gate1] }}
  gate2: {{ external: true, dependencies: [second] }}
  adds: {{ run: 'echo adds >>ran; OPERON add - <more.jsonl', dependencies: [gate2] }}
  third: {{ forEach: 1..{WIDTH}, run: 'echo third-${{item}} >>ran; sleep 6', dependencies: [gate2] }}
  unwanted: {{ run: 'echo unwanted >>ran', queue: held }}
  gate3: {{ external: true, dependencies: [third, adds] }}
  fourth: {{ forEach: 1..{WIDTH}, run: 'echo fourth-${{item}} >>ran', dependencies: [gate3] }}
  reads: {{ run: 'echo reads >>ran; cat "$OPERON_INPUTS" >inputs', dependencies: [gate3, number] }}
  broken: {{ run: 'echo broken >>ran; exit 3', dependencies: [gate3] }}
  skipped: {{ run: 'echo skipped >>ran', dependencies: [broken] }}
"""
# What they are, with the groups of elements and what `adds` adds.
COUNT = 4 * WIDTH + 14 + 1
LAYERS = (("first", "number", "flaky"), ("second",), ("third", "adds"),
          ("fourth", "reads", "broken"))
MORE = '{"name": "more", "run": "echo more >>ran"}\n'


class Failure(Exception):
    """What does not hold."""


def wait_for(what, holds):
    """Returns the first true answer of `holds`."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if answer := holds():
            return answer
        time.sleep(0.05)
    raise Failure(f"{what}: not within {PATIENCE} s")


class Cluster:
    """One coordinator and two workers, each from one of two directories of programs."""

    def __init__(self, scratch, earlier, later, broker, workers_broker):
        self.scratch = pathlib.Path(scratch)
        self.programs = {"earlier": pathlib.Path(earlier), "later": pathlib.Path(later)}
        self.broker = broker
        self.workers_broker = workers_broker
        self.socket = self.scratch / "operon.sock"
        self.running = {}
        # Nothing of the user's, so that no other coordinator is found.
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.scratch), "LANG": "C.UTF-8",
            "XDG_STATE_HOME": str(self.scratch / "state"),
            "OPERON_COORDINATOR": f"unix:{self.socket}"}

    def trust(self, age, program):
        """0.2.0 seals nothing and has no such option."""
        command = ["operon", "coordinator"] if program == "operon" else [program]
        said = subprocess.run([self.programs[age] / command[0], *command[1:], "--help"],
                              capture_output=True, text=True, check=True).stdout
        return ["--trust", "none"] if "--trust" in said else []

    def start(self, name, age, program, *arguments):
        with open(self.scratch / f"{name}.out", "ab") as output:
            self.running[name] = subprocess.Popen(
                [self.programs[age] / program, *arguments], stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, env=self.environment, cwd=self.scratch)

    def said(self, name):
        """The last words of a program."""
        return (self.scratch / f"{name}.out").read_text(errors="replace")[-2000:]

    def start_coordinator(self, age):
        """Starts it on the store that there is."""
        self.start("coordinator", age, "operon", "coordinator", "--broker", self.broker,
                   "--store", str(self.scratch / "operon.db"), "--listen", f"unix:{self.socket}",
                   *self.trust(age, "operon"))

    def wait_until_ready(self, age):
        def is_ready():
            if self.running["coordinator"].poll() is not None:
                raise Failure(f"the coordinator ended: {self.said('coordinator')}")
            return self.socket.exists() and self.ask(age, "list", check=False).returncode == 0
        wait_for("the coordinator answers", is_ready)

    def start_worker(self, name, age):
        self.start(name, age, "operon-worker", "--broker", self.workers_broker, "--name", name,
                   "-j", str(SLOTS), *self.trust(age, "operon-worker"))

    def end(self, name, how=signal.SIGTERM):
        """Ends a program, and returns its exit code."""
        program = self.running[name]
        program.send_signal(how)
        try:
            code = program.wait(PATIENCE)
        except subprocess.TimeoutExpired as late:
            raise Failure(f"{name} does not end: {self.said(name)}") from late
        del self.running[name]
        return code

    def ask(self, age, *arguments, check=True):
        """`operon` of this age, as somebody at a terminal runs it."""
        ended = subprocess.run([self.programs[age] / "operon", *arguments], capture_output=True,
                               text=True, env=self.environment, cwd=self.scratch, check=False,
                               timeout=2 * PATIENCE)
        if check and ended.returncode != 0:
            raise Failure(f"operon {' '.join(arguments)}: {ended.returncode}: {ended.stderr}")
        return ended

    def json(self, age, *arguments):
        return json.loads(self.ask(age, *arguments, "--output", "json").stdout)

    def stop(self):
        for name in reversed(list(self.running)):
            self.end(name, signal.SIGKILL)


class Upgrade:
    """The run, stage by stage. Each stage checks what it can before the next one begins."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.ran = cluster.scratch / "ran"

    def lines(self):
        return self.ran.read_text().split() if self.ran.exists() else []

    def has_started(self, layer, count):
        wait_for(f"{count} operations of {layer} have started",
                 lambda: sum(line.startswith(f"{layer}-") for line in self.lines()) >= count)

    def is_executing(self, name):
        wait_for(f"{name} waits for its completion", lambda: self.state("later", name) == "executing")

    def state(self, age, name):
        return self.cluster.json(age, "show", f"night/{name}")["operation"]["state"]

    def outcome(self, age, name):
        """`None`: there is no such operation, or it has not ended."""
        ended = self.cluster.ask(age, "show", f"night/{name}", "--output", "json", check=False)
        if ended.returncode != 0:
            return None
        return json.loads(ended.stdout)["operation"].get("outcome")

    def complete(self, age, gate):
        self.cluster.ask(age, "complete", f"night/{gate}", "--value", '"go"')

    def replace_worker(self, name):
        """As the package does: the earlier one drains, and the later one takes its place."""
        code = self.cluster.end(name)
        if code != 0:
            raise Failure(f"{name} ended with {code}: {self.cluster.said(name)}")
        self.cluster.start_worker(name, "later")

    def run(self):
        cluster = self.cluster
        (cluster.scratch / "night.yaml").write_text(
            GRAPH.replace("OPERON ", f'{cluster.programs["earlier"] / "operon"} '))
        (cluster.scratch / "more.jsonl").write_text(MORE)

        say("all programs are the earlier ones")
        cluster.start_coordinator("earlier")
        cluster.wait_until_ready("earlier")
        cluster.start_worker("one", "earlier")
        cluster.start_worker("two", "earlier")
        cluster.ask("earlier", "queue", "suspend", "held")
        cluster.ask("earlier", "submit", "night.yaml")
        self.has_started("first", WIDTH)

        say("the first worker is a later one")
        self.replace_worker("one")
        self.is_executing("gate1")
        self.complete("later", "gate1")
        self.has_started("second", WIDTH // 2)

        say("both workers are later ones; one of them is killed")
        self.replace_worker("two")
        self.is_executing("gate2")
        self.complete("earlier", "gate2")
        self.has_started("third", WIDTH)
        wait_for("what was added has succeeded",
                 lambda: self.outcome("earlier", "more") == "succeeded")
        cluster.end("two", signal.SIGKILL)
        cluster.start_worker("two", "later")

        say("the coordinator is a later one")
        code = cluster.end("coordinator")
        if code != 0:
            raise Failure(f"the coordinator ended with {code}: {cluster.said('coordinator')}")
        cluster.start_coordinator("later")
        cluster.wait_until_ready("later")
        self.is_executing("gate3")
        cluster.ask("later", "cancel", "night/unwanted")
        self.complete("later", "gate3")
        ended = cluster.ask("later", "wait", "night", "--timeout", f"{PATIENCE}s", check=False)
        self.check(ended)
        self.go_back()

    def check(self, ended):
        """Each operation has the outcome that it must have, and ran as often as it must."""
        if ended.returncode != 1:
            raise Failure(f"operon wait says {ended.returncode}, and not that an operation failed: "
                          f"{ended.stderr}")
        listed = self.cluster.json("later", "operations", "night")["operations"]
        outcomes = {one["name"]: one["outcome"] for one in listed}
        wanted = {"broken": "failed", "skipped": "skipped", "unwanted": "cancelled"}
        wrong = {name: outcome for name, outcome in outcomes.items()
                 if outcome != wanted.get(name, "succeeded")}
        if wrong or len(outcomes) != COUNT:
            raise Failure(f"of {len(outcomes)} operations, {COUNT} wanted, these are wrong: {wrong}")

        ran = self.lines()
        places = [{place for place, line in enumerate(ran) if line.split("-")[0] in layer}
                  for layer in LAYERS]
        for layer, (before, after) in enumerate(zip(places, places[1:])):
            if max(before) > min(after):
                raise Failure(f"layer {layer + 1} began before its dependencies had ended: {ran}")
        # Everything ran once, but for what was meant to fail and what the killed worker had.
        again = [line for line in set(ran) if ran.count(line) > 1 and line != "flaky"]
        if len(again) > SLOTS or any(line.split("-")[0] not in LAYERS[2] for line in again):
            raise Failure(f"these ran again: {again}")
        if ran.count("flaky") != 2 or "unwanted" in ran or "skipped" in ran:
            raise Failure(f"these ran: {ran}")
        inputs = json.loads((self.cluster.scratch / "inputs").read_text())
        if inputs["number"] != 42:
            raise Failure(f"what the earlier coordinator kept is read as {inputs}")
        say(f"{len(outcomes)} operations have their outcomes; {len(again)} ran again, after the kill")

    def go_back(self):
        """An earlier program refuses the store of a later one, or reads it. Either leaves it whole."""
        cluster = self.cluster
        before = cluster.json("later", "status", "night")
        cluster.end("coordinator")
        cluster.start_coordinator("earlier")
        program = cluster.running["coordinator"]
        wait_for("the earlier coordinator decides", lambda: program.poll() is not None
                 or cluster.ask("earlier", "list", check=False).returncode == 0)
        if program.poll() is None:
            say("the earlier coordinator reads the store of the later one")
        else:
            last = cluster.said("coordinator").splitlines()[-1]
            if "written by a later version" not in last:
                raise Failure(f"the earlier coordinator ended with {program.returncode}: {last}")
            say(f"the earlier coordinator says: {last}")
        cluster.end("coordinator")
        cluster.start_coordinator("later")
        cluster.wait_until_ready("later")
        after = cluster.json("later", "status", "night")
        if before != after:
            raise Failure(f"the store says {after} after the earlier coordinator, {before} before")


def say(text):
    print(f"  {text}", flush=True)


def main():
    scratch, earlier, later = sys.argv[1:]
    # A signal must not leave a process behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    cluster = Cluster(scratch, earlier, later, os.environ["OPERON_TEST_BROKER"],
                      os.environ["OPERON_TEST_WORKER_BROKER"])
    try:
        Upgrade(cluster).run()
    except Failure as failure:
        sys.exit(f"error: {failure}")
    finally:
        cluster.stop()


main()
