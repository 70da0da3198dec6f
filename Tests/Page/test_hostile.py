"""Nothing that a client sends is anything but text on the page."""

import base64
import json

from .api import ApiError, part
from .browser import hook
from .case import PageCase
from .vectors import VECTORS

SECRET = "canary-8d3f21b07c55"
# Elements that the page never makes, or makes only as these.
STRANGERS = """
    const strange = ["script", "img", "iframe", "object", "embed", "link", "style", "base", "meta",
        "video", "audio", "source", "math", "animate", "foreignObject", "b[onclick]", "frame"];
    const found = [...document.querySelectorAll(strange.map((one) => `#page ${one}`).join())]
        .map((one) => one.outerHTML);
    for (const one of document.querySelectorAll("#page *")) {
        for (const { name, value } of one.attributes) {
            if (name.startsWith("on") || (/^(href|src|action|xlink:href|formaction)$/.test(name)
                && !/^(#|\\/v1\\/)/.test(value))) found.push(`${one.tagName} ${name}=${value}`);
        }
    }
    if (document.head.children.length !== 7) found.push(document.head.innerHTML);
    return found;"""


class HostileTests(PageCase):
    """Vectors in every field that a client sets."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.graph = None

    def setUp(self):
        super().setUp()
        type(self).graph = self.graph or self.make()
        self.page.log_in("ann")

    def make(self):
        """A graph whose operations are named, queued and locked as the vectors."""
        operations = {}
        for number, text in enumerate(VECTORS):
            output = json.dumps({"text": text, text: 1})
            operations[text] = {
                "command": ["/bin/sh", "-c", "printf '%s\\n' \"$1\"; printf '%s\\n' \"$1\" >&2; "
                            "printf '%s' \"$2\" > \"$OPERON_OUTPUT\"", "sh", text, output],
                "queue": text, "exclusive": text, "environment": {"TEXT": text},
                "description": text}
            operations[f"external {number} {text}"] = {"external": True, "input": {text: text}}
            operations[f"after {number} {text}"] = {
                "run": "true", "dependencies": {f"external {number} {text}": "succeeded"}}
            operations[f"nowhere {number}"] = {"run": "true", "workers": {"trap": text}}
        operations[f"kind {VECTORS[2]}"] = {"operation": VECTORS[2]}
        operations["repeated"] = {"forEach": list(VECTORS), "command": ["echo", "$item"]}
        graph = self.api.submit(VECTORS[0], operations,
                                keys={text: {"limit": 2} for text in VECTORS})["id"]
        for number, text in enumerate(VECTORS):
            name = f"external {number} {text}"
            self.api.wait_state(graph, name, "executing")
            path = f"graphs/{graph}/operations/{part(name)}"
            if number % 2:
                self.api.post(f"{path}/complete", {"outcome": "failed", "error": {
                    "message": text, "type": text,
                    "payload": base64.b64encode(text.encode()).decode()}})
            else:
                self.api.post(f"{path}/cancel", {"reason": text})
        for text in VECTORS:
            self.api.wait_state(graph, text, "succeeded")
        return graph

    def look(self, what):
        """Fails if anything on the page is not of the page."""
        self.assertEqual(self.page.script(STRANGERS), [], what)
        self.assertEqual(self.page.script("return window.__ran"), [], what)

    def test_names_reasons_and_errors_in_lists(self):
        self.page.go(f"#/graphs/{self.graph}")
        self.page.wait_title(VECTORS[0])
        self.page.wait_has("#operations")
        self.look("overview")
        self.page.go(f"#/graphs/{self.graph}/operations")
        self.page.wait("all are listed", lambda: len(self.page.rows("#operations")) > 150)
        rows = {row["Operation"]: row for row in self.page.rows("#operations")}
        for number, text in enumerate(VECTORS):
            self.assertEqual(rows[text]["Queue"], text)
            self.assertEqual(rows[f"external {number} {text}"]["Detail"], text)
            self.assertIn(f"external {number} {text}", rows[f"after {number} {text}"]["Detail"])
        self.look("operations")
        self.page.go("#/graphs")
        self.page.wait_row("#graphs", "Graph", VECTORS[0])
        self.look("graphs")

    def test_graph_names_and_reasons(self):
        for number, text in enumerate(VECTORS):
            graph = self.api.submit(text, {"hand": {"external": True}})["id"]
            self.api.post(f"graphs/{graph}/suspend", {"reason": text})
            if number % 8 == 0:
                self.page.go(f"#/graphs/{graph}")
                self.page.wait_title(text)
                self.page.wait_text("#graph-progress", text)
                self.assertEqual(self.page.driver.title.split(), f"{text} – Operon".split())
            self.api.post(f"graphs/{graph}/cancel", {"reason": text})
            if number % 8 == 0:
                self.page.wait_text("#graph-progress", f"reason: {text}")
                self.look(text)
        self.page.go("#/graphs")
        for text in VECTORS:
            self.page.wait_row("#graphs", "Graph", text)
        self.look("graphs")

    def test_logs_outputs_and_commands(self):
        for text in VECTORS:
            name = "@" + str(self.api.operation(self.graph, text)["index"])
            self.page.go(f"#/graphs/{self.graph}/operations/{name}")
            self.page.wait_title(text)
            self.page.wait_text("#log", text)
            self.assertEqual(self.page.text("#log"), f"{text}\n{text}\n")
            # The arguments in quotes, as a shell would take them.
            self.assertIn(text.replace("'", "'\\''"), self.page.text("#command"))
            self.page.click("#output summary")
            self.page.wait_text("#output pre", json.dumps(text, ensure_ascii=False))
            self.look(text)

    def test_escape_sequences_of_a_log(self):
        # Colours, a title, a cleared screen, a link, and control characters alone.
        script = (r"printf 'a \033[1;31mred\033[0m b\n\033]0;title\007c \033[2J\033[Hd\n';"
                  r" printf '\033]8;;javascript:alert(1)\033\\link\033]8;;\033\\ e\n';"
                  r" printf '\000\001\010\177f\302\233g\n'")
        graph = self.api.submit("escapes", {"a": {"run": script}})["id"]
        self.api.wait_state(graph, "a", "succeeded")
        self.page.go(f"#/graphs/{graph}/operations/a")
        self.page.wait_text("#log", "fg")
        self.assertEqual(self.page.script("return document.querySelector('#log').textContent"),
                         "a red b\nc d\nlink e\nfg\n")
        self.look("log with escape sequences")

    def test_operations_by_name(self):
        for number, text in enumerate(VECTORS):
            self.page.go(f"#/graphs/{self.graph}/operations/{part(f'external {number} {text}')}")
            self.page.wait_title(f"external {number} {text}")
            self.page.wait_text("#detail", text)
            if number % 2:
                self.assertEqual(self.page.text("#error-payload"), text)
                self.assertIn(text, self.page.text("#operation-facts"))
            self.page.click("#input summary")
            self.page.wait_text("#input pre", json.dumps(text, ensure_ascii=False))
            self.look(text)
            if number % 6 != 1:
                continue
            self.page.click("#dependents a")
            self.page.wait_title(f"after {number} {text}")
            self.page.wait_text("#explain", text)
            self.look(text)

    def test_picture_and_timeline(self):
        self.page.go(f"#/graphs/{self.graph}/picture")
        self.page.wait_has("#picture .box")
        shown = " ".join(self.page.texts("#picture .box title"))
        self.assertTrue(any(text in shown for text in VECTORS))
        self.page.write(hook("picture-search"), VECTORS[2])
        self.page.wait_text("#picture-found", "")
        self.look("picture")
        self.page.go(f"#/graphs/{self.graph}/timeline")
        self.page.wait_has("#longest")
        self.look("timeline")
        self.page.act("#timeline", lambda canvas: canvas.send_keys("\ue015"))
        self.page.wait_has("#timeline-tip")
        self.look("timeline with a tip")

    def test_queues_and_keys(self):
        for text in VECTORS[::6]:
            self.api.post(f"queues/{part(text)}/suspend", {"reason": text})
        self.page.go("#/queues")
        for text in VECTORS:
            self.page.wait_row("#queues", "Queue", text)
            self.page.wait_row("#keys", "Key", text)
        for text in VECTORS[::6]:
            self.page.wait_row("#queues", "Queue", text, State=text)
        self.look("queues")
        for text in VECTORS[::6]:
            self.api.ask("POST", f"queues/{part(text)}/resume")
            self.page.go(f"#/queues/{part(text)}")
            self.page.wait_title(text)
            self.page.wait_has("#queue-facts")
            self.look(text)
            self.page.click(hook("queue-limits"))
            self.page.wait_text("#queue-limits-dialog", text)
            self.look("dialog")
            self.page.answer("queue-limits-dialog", limit="5")
            self.done(f"Set the limits of queue “{text}”.")
            self.look("status region")

    def test_workers_and_demands(self):
        labels = [item for number, text in enumerate(VECTORS[:60])
                  for item in ("--label", f"l{number}={text}")]
        name = VECTORS[3]
        self.cluster.start_worker(name, "--slots", "1", "--queues", "nobody", *labels,
                                  log="hostile-worker")
        self.page.go("#/workers")
        row = self.page.wait_row("#workers", "Worker", name)
        for number, text in enumerate(VECTORS[:60]):
            self.assertIn(f"l{number}={text}", row["Labels"])
        self.look("workers")
        self.page.click_in_row("#workers", "Worker", name, "drain")
        self.page.wait_text("#drain-dialog", name)
        self.look("drain dialog")
        self.page.close_dialog()
        self.cluster.end(self.cluster.workers[name])
        self.page.go("#/cluster")
        self.page.wait("all demands are shown", lambda: all(
            any(text in row["What they ask for"] for row in self.page.rows("#demands"))
            for text in VECTORS))
        self.look("cluster")
        self.page.go(f"#/graphs/{self.graph}/operations/nowhere%202")
        self.page.wait_text("#explain", VECTORS[2])
        self.look("a demand in a reason")

    def test_triggers(self):
        added = []
        for text in VECTORS:
            try:
                self.api.add_trigger(text, {"a": {"operation": "nothing"}})
                added.append(text)
            except ApiError as error:
                self.assertEqual(error.status, 400)
        self.api.add_trigger("suspended for a reason", {"a": {"operation": "nothing"}})
        for text in added:
            self.api.post(f"triggers/{part(text)}/fire", {"data": {text: text}})
        self.api.post("triggers/suspended%20for%20a%20reason/suspend", {"reason": VECTORS[2]})
        self.page.go("#/triggers")
        for text in added:
            self.page.wait_row("#triggers", "Trigger", text)
        self.look("triggers")
        for text in added[::6]:
            self.page.go(f"#/triggers/{part(text)}")
            self.page.wait_title(text)
            self.page.wait_has("#history")
            self.look(text)
        self.page.go("#/triggers/suspended%20for%20a%20reason")
        self.page.wait_text("#trigger-facts", VECTORS[2])
        self.look("reason of a trigger")
        for text in added:
            self.api.ask("DELETE", f"triggers/{part(text)}")

    def test_addresses(self):
        self.allow_status(404, 400)
        for number, text in enumerate(VECTORS):
            routes = (f"#/graphs/{part(text)}x", f"#/{part(text)}", f"#{text}",
                      f"#/graphs?name={part(text)}", f"#/queues?name={part(text)}",
                      f"#/graphs/{self.graph}/operations/{part('no ' + text)}",
                      f"#/graphs/{self.graph}/operations?prefix={part(text)}&state={part(text)}")
            for route in (routes[number % len(routes)], routes[(number + 2) % len(routes)]):
                self.page.go(route)
                self.page.wait_has("#main h1")
                self.look(route)
        # With a fresh document, too, and the code of a login.
        self.allow_status(401)
        for text in VECTORS[::4]:
            self.page.open(f"#code={part(text)}")
            self.page.wait_title("Graphs")
            self.look(text)

    def test_refusals(self):
        self.allow_status(400, 404, 409)
        self.page.go(f"#/graphs/{self.graph}/operations/{part('no ' + VECTORS[2])}")
        self.page.wait_text(hook("problem"), VECTORS[2])
        self.look("problem")
        self.page.go("#/queues")
        self.page.click_in_row("#queues", "Queue", "default", "queue-limits")
        self.page.answer("queue-limits-dialog", rate=VECTORS[2])
        self.page.wait_has("#queue-limits-dialog [data-test=refused]")
        self.look("refusal")
        self.page.close_dialog()


class SecretTests(PageCase):
    """The value of a secret, which only a worker knows."""

    def test_no_value_of_a_secret(self):
        self.page.log_in("ann")
        secrets = self.cluster.scratch / "secrets"
        secrets.mkdir(mode=0o700)
        (secrets / "db").write_text(SECRET + "\n", encoding="utf-8")
        (secrets / "db").chmod(0o600)
        self.cluster.start_worker("worker-with-secrets", "--slots", "1", "--secrets", str(secrets))
        self.addCleanup(lambda: self.cluster.end(self.cluster.workers["worker-with-secrets"]))
        use = {"environment": {"P": {"secret": "db"}}}
        graph = self.api.submit("secret", {
            "good": {"run": "echo \"<$P>\"; echo \"{\\\"it is\\\": 7}\" > $OPERON_OUTPUT", **use},
            "bad": {"run": "echo \"it is $P\"; exit 3", **use}})["id"]
        self.api.wait_status(graph, "failed", 60)
        for route, selector, shown in (
                ("operations/good", "#log", "<***>"), ("operations/bad", "#log", "it is ***"),
                ("operations", "#operations", "bad"), ("picture", "#picture .box", ""),
                ("timeline", "#timeline[width]", "")):
            self.page.go(f"#/graphs/{graph}/{route}")
            self.page.wait_text(selector, shown)
            self.assertNotIn(SECRET, self.page.driver.page_source, route)
        self.page.go("#/workers")
        self.page.wait_row("#workers", "Worker", "worker-with-secrets")
        self.assertNotIn(SECRET, self.page.driver.page_source)
