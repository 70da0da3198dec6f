"""Checks of what is deployed that no validator knows: for scripts/check-deploy.

    check_deploy.py times                   whoever stops a worker waits for its drain
    check_deploy.py containers              every container is confined, and has a limit of memory
    check_deploy.py observability FILE      alerts and dashboard name metrics that there are; the
                                            queries of the dashboard go to FILE as rules
    check_deploy.py definitions PASSWORD    standard input: definitions for the prefix `a+b.` and
                                            workers with this password
"""
import base64
import hashlib
import json
import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Ending what is left after a drain, and having it acknowledged.
LAST_WORDS_SECONDS = 10


def drain_timeout(options):
    return float(options[options.index("--drain-timeout") + 1])


def check_times():
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    worker = compose["services"]["worker"]
    documents = yaml.safe_load_all((ROOT / "deploy/kubernetes/operon.yaml").read_text())
    pods = [one["spec"]["template"]["spec"] for one in documents if one["kind"] == "Deployment"]
    defaults = (ROOT / "deploy/debian/operon-worker.default").read_text()
    options = re.search(r'^OPERON_WORKER_OPTIONS="(.*)"$', defaults, re.M)[1].split()
    limits = [("docker-compose.yml", worker["stop_grace_period"].rstrip("s"), worker["command"])]
    limits += [
        ("deploy/kubernetes/operon.yaml", pod["terminationGracePeriodSeconds"],
         pod["containers"][0]["args"]) for pod in pods
    ]
    for unit in sorted((ROOT / "deploy/systemd").glob("operon-worker*.service")):
        seconds = re.search(r"^TimeoutStopSec=(\d+)$", unit.read_text(), re.M)[1]
        limits.append((unit.name, seconds, options))
    for name, limit, arguments in limits:
        if float(limit) < drain_timeout(arguments) + LAST_WORDS_SECONDS:
            sys.exit(f"{name}: {limit} s are too short for a drain of {arguments}")


def check_definitions(password):
    text = sys.stdin.read()
    definitions = json.loads(text)
    if password in text:
        sys.exit("the definitions show a password")
    # Unless this is set, a user `guest` could log in from the broker's own machine alone.
    configured = (ROOT / "deploy/rabbitmq/operon.conf").read_text()
    if re.search(r"^\s*loopback_users", configured, re.M):
        sys.exit("deploy/rabbitmq/operon.conf sets loopback_users")
    tags = [(user["name"], user["tags"]) for user in definitions["users"]]
    if tags != [("operon-coordinator", ""), ("operon-worker", "")]:
        sys.exit(f"the broker has other users, or they administer it: {tags}")
    users = {user["name"]: base64.b64decode(user["password_hash"])
             for user in definitions["users"]}
    salted = users["operon-worker"]
    if salted[4:] != hashlib.sha256(salted[:4] + password.encode()).digest():
        sys.exit("a hash is not that of its password")
    rights = {right["user"]: right for right in definitions["permissions"]}
    if len(definitions["permissions"]) != 2 or set(rights) != set(users):
        sys.exit("a user of the broker has no rights, or more than one set of them")
    prefix, none = "a+b.", ["aab.worker.1", "operon.worker.1", "amq.direct", "a+b.other", ""]
    # User, right, what it matches, what it does not. RabbitMQ searches, so the anchors count.
    expected = [
        ("worker", "configure", ["worker.1.1"], ["coordinator", "events", "xworker.1"]),
        ("worker", "write", ["worker.1.1", "events", "beats"],
         ["dispatch", "broadcast", "events.1.1", "coordinator"]),
        ("worker", "read", ["worker.1.1", "dispatch", "broadcast"],
         ["events", "beats", "events.1.1", "coordinator", "dispatch.1"]),
        ("coordinator", "configure",
         ["coordinator", "events", "events.1.1", "beats.1.1", "dispatch", "broadcast", "asks.1"],
         ["worker.1.1", "coordinator.1", "other"]),
        ("coordinator", "write", ["events", "events.1.1", "dispatch", "broadcast"],
         ["worker.1.1", "coordinator", "dispatch.1"]),
        ("coordinator", "read", ["coordinator", "events.1.1", "beats", "asks.1"],
         ["worker.1.1", "dispatch", "broadcast"]),
    ]
    for user, right, allowed, denied in expected:
        pattern = rights[f"operon-{user}"][right]
        allowed = [prefix + name for name in allowed]
        if user == "coordinator" and right == "write":
            allowed.append("amq.default")
        else:
            denied = denied + ["/amq.default"]
        refused = [prefix + name if name[0] != "/" else name[1:] for name in denied] + none
        for name in allowed + refused:
            if bool(re.search(pattern, name)) != (name in allowed):
                sys.exit(f"{user} {right} {pattern}: wrong for {name}")


def check_containers():
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    for name, service in compose["services"].items():
        if not (service.get("read_only") and service.get("cap_drop") == ["ALL"]
                and service.get("security_opt") == ["no-new-privileges:true"]):
            sys.exit(f"docker-compose.yml: {name} is not confined")
        if not ("mem_limit" in service and "pids_limit" in service):
            sys.exit(f"docker-compose.yml: {name} has no limits")
        for port in service.get("ports", []):
            if not port.startswith("127.0.0.1:"):
                sys.exit(f"docker-compose.yml: {name} is published beyond this machine")
    # RabbitMQ does not know the limit of its container by itself.
    configured = (ROOT / "deploy/rabbitmq/compose.conf").read_text()
    told = re.search(r"^total_memory_available_override_value = (\d+)GiB$", configured, re.M)
    limit = compose["services"]["rabbitmq"]["mem_limit"]
    if told is None or f"{told[1]}g" != limit:
        sys.exit(f"deploy/rabbitmq/compose.conf does not tell the broker its limit of {limit}")
    documents = yaml.safe_load_all((ROOT / "deploy/kubernetes/operon.yaml").read_text())
    pods = {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in documents
            if one["kind"] in ("Deployment", "StatefulSet")}
    for name, pod in pods.items():
        if pod["automountServiceAccountToken"] or not pod["securityContext"]["runAsNonRoot"]:
            sys.exit(f"deploy/kubernetes/operon.yaml: {name} has more rights than it needs")
        for container in pod["containers"]:
            rights = container["securityContext"]
            if (rights["allowPrivilegeEscalation"] or not rights["readOnlyRootFilesystem"]
                    or rights["capabilities"]["drop"] != ["ALL"]
                    or "memory" not in container["resources"]["limits"]):
                sys.exit(f"deploy/kubernetes/operon.yaml: {name} is not confined")


def check_observability(file):
    folder = ROOT / "deploy/observability"
    known = set(re.findall(r"\boperon_\w+", (ROOT / "docs/OBSERVING.md").read_text()))

    def check_names(expression, place):
        for name in re.findall(r"\boperon_\w+", expression):
            if re.sub(r"_(bucket|count|sum)$", "", name) not in known:
                sys.exit(f"{place}: docs/OBSERVING.md has no {name}")

    rules = yaml.safe_load((folder / "alerts.yaml").read_text())["groups"][0]["rules"]
    for rule in rules:
        check_names(rule["expr"], rule["alert"])
    tests = yaml.safe_load((folder / "alerts-test.yaml").read_text())["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    for rule in rules:
        expected = {bool(case.get("exp_alerts")) for case in cases
                    if case["alertname"] == rule["alert"]}
        if expected != {True, False}:
            sys.exit(f"alerts-test.yaml does not try both for {rule['alert']}: that it fires, "
                     "and that it does not")

    board = json.loads((folder / "dashboard.json").read_text())
    queries = []
    taken = {}
    for panel in board["panels"]:
        place = f"panel “{panel['title']}”"
        at = panel["gridPos"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                if x >= 24 or (x, y) in taken:
                    sys.exit(f"{place} is on “{taken.get((x, y), 'the edge')}”")
                taken[x, y] = panel["title"]
        for target in panel.get("targets", []):
            check_names(target["expr"], place)
            queries.append(target["expr"])
    if len({panel["id"] for panel in board["panels"]}) < len(board["panels"]):
        sys.exit("two panels have one number")
    # What Grafana puts in.
    records = [{"record": f"query:{number}",
                "expr": query.replace("$__rate_interval", "5m").replace("$job", "operon")}
               for number, query in enumerate(queries)]
    group = {"groups": [{"name": "dashboard", "rules": records}]}
    pathlib.Path(file).write_text(json.dumps(group))


CHECKS = {"times": check_times, "containers": check_containers, "observability": check_observability,
          "definitions": check_definitions}
CHECKS[sys.argv[1]](*sys.argv[2:])
