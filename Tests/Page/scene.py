"""A cluster with something in every view, made once in a run."""

from .case import World

GRAPH = "nightly report"

# The addresses of all views, and what shows that each has what it shows.
VIEWS = {
    "graphs": ("#/graphs", "#graphs"),
    "graph": ("#/graphs/{graph}", "#operations"),
    "operations": ("#/graphs/{graph}/operations", "#operations"),
    "operation": ("#/graphs/{graph}/operations/broken", "#log"),
    "running": ("#/graphs/{graph}/operations/slow", "#log"),
    "external": ("#/graphs/{graph}/operations/approve", "#attempts"),
    "waiting": ("#/graphs/{graph}/operations/publish", "#explain"),
    "picture": ("#/graphs/{graph}/picture", "#picture .box"),
    "timeline": ("#/graphs/{graph}/timeline", "#longest"),
    "queues": ("#/queues", "#queues"),
    "queue": ("#/queues/limited", "#operations"),
    "workers": ("#/workers", "#workers"),
    "triggers": ("#/triggers", "#triggers"),
    "trigger": ("#/triggers/nightly", "#ticks"),
    "fired": ("#/triggers/on%20demand", "#history"),
    "cluster": ("#/cluster", "#cluster-facts"),
}


def operations(cluster):
    """Operations in every state."""
    return {
        "fetch": {"run": "echo fetched; echo '{\"files\": 3}' > \"$OPERON_OUTPUT\""},
        "convert": {"forEach": [f"part {number}" for number in range(12)],
                    "run": "echo \"$item\"", "dependencies": ["fetch"]},
        "broken": {"run": "echo before the end; echo an error >&2; exit 3", "retry": 1},
        "after broken": {"run": "true", "dependencies": ["broken"]},
        "slow": {"run": cluster.gate("scene"), "exclusive": "licence", "queue": "limited",
                 "resources": {"licences": 1}},
        "next in line": {"run": "true", "exclusive": "licence", "queue": "limited"},
        "approve": {"external": True, "input": {"who": "ann"}, "dependencies": ["fetch"]},
        "rejected": {"external": True},
        "publish": {"run": "true", "dependencies": ["approve", "convert[*]"],
                    "timeout": "5m", "priority": "high"},
        "nowhere": {"run": "true", "workers": {"region": "mars"}, "resources": {"cpus": 1}},
    }


class Scene:
    """The scene, and the number of its graph."""

    graph = None

    @classmethod
    def make(cls):
        """Makes the scene, or returns the number of its graph."""
        if cls.graph is not None:
            return cls.graph
        cluster = World.cluster
        api = cluster.api
        cls.graph = api.submit(
            GRAPH, operations(cluster), keys={"licence": {"limit": 2}},
            queues={"limited": {"maxConcurrentOperationCount": 1, "rate": "10/s", "burst": 3},
                    "held": {"isSuspended": True}})["id"]
        api.add_trigger("nightly", {"a": {"operation": "nothing"}},
                        on={"cron": {"expression": "0 3 * * 1-5", "timezone": "Europe/Berlin"}})
        api.add_trigger("on demand", {"a": {"operation": "nothing"}})
        api.post("triggers/on%20demand/fire", {"data": {"by": "hand"}})
        api.wait_state(cls.graph, "rejected", "executing")
        api.ask("POST", f"graphs/{cls.graph}/operations/rejected/complete",
                {"outcome": "cancelled", "reason": "not today"})
        for name, state in (("slow", "executing"), ("broken", "failed"), ("approve", "executing"),
                            ("after broken", "skipped"), ("convert[part 11]", "succeeded")):
            api.wait_state(cls.graph, name, state)
        return cls.graph

    @classmethod
    def route(cls, view):
        """The address of a view, and the selector of what it shows."""
        route, selector = VIEWS[view]
        return route.format(graph=cls.make()), selector
