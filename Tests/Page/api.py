"""The HTTP API of the coordinator, as the tests ask it whether the page tells the truth."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request

# How long anything may take on a machine that is busy with something else.
PATIENCE = 60


class ApiError(Exception):
    """An answer that is an error."""

    def __init__(self, status, problem):
        super().__init__(f"{status}: {problem.get('detail')}")
        self.status = status
        self.detail = problem.get("detail")


def wait_for(what, condition, seconds=PATIENCE):
    """Returns what the condition returns as soon as that is true; `what` names it in an error."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def part(text):
    """One part of an address, encoded as a whole."""
    return urllib.parse.quote(str(text), safe="")


class Api:
    """A client with a token."""

    def __init__(self, url, token):
        self.url = url
        self.token = token

    def ask(self, method, path, body=None, content_type="application/json"):
        """Sends a request to `/v1/…` and returns the value of the answer."""
        data = body.encode() if isinstance(body, str) else (
            None if body is None else json.dumps(body).encode())
        request = urllib.request.Request(self.url + "/v1/" + path, data, method=method, headers={
            "Authorization": f"Bearer {self.token}", "Content-Type": content_type})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise ApiError(error.code, json.loads(error.read() or b"{}")) from None
        try:
            return json.loads(text) if text else None
        except ValueError:
            return text.decode(errors="replace")

    def get(self, path):
        """The value at an address."""
        return self.ask("GET", path)

    def post(self, path, body=None):
        """Sends a command."""
        return self.ask("POST", path, {} if body is None else body)

    def submit(self, name, operations, **fields):
        """Submits a graph and returns it."""
        return self.post("graphs", {"name": name, "operations": operations, **fields})

    def graph(self, graph):
        """A graph by its number or its name."""
        return self.get(f"graphs/{part(graph)}")

    def detail(self, graph, operation):
        """An operation with its attempts."""
        return self.get(f"graphs/{part(graph)}/operations/{part(operation)}")

    def operation(self, graph, operation):
        """An operation without its attempts."""
        return self.detail(graph, operation)["operation"]

    def wait_state(self, graph, operation, state):
        """Waits until an operation is in a state, or has an outcome."""
        def look():
            value = self.operation(graph, operation)
            return value if value.get("outcome", value["state"]) == state else None
        return wait_for(f"{graph}/{operation} is {state}", look)

    def wait_status(self, graph, status, seconds=PATIENCE):
        """Waits until a graph has a status."""
        def look():
            value = self.graph(graph)
            return value if value["status"] == status else None
        return wait_for(f"graph {graph} is {status}", look, seconds)

    def queue(self, name):
        """A queue."""
        return self.get(f"queues/{part(name)}")

    def key(self, name):
        """A key."""
        return self.get(f"keys/{part(name)}")

    def trigger(self, name):
        """A trigger."""
        return self.get(f"triggers/{part(name)}")

    def add_trigger(self, name, operations, on="event", **fields):
        """Adds a trigger whose graph has these operations."""
        graph = json.dumps({"name": f"graph of {name}"[:200], "operations": operations})
        return self.post("triggers", {"name": name, "on": on, "graph": {
            "text": graph, "contentType": "application/json"}, **fields})
