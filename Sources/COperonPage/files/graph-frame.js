// What all views of a graph share: its name, its status, its actions, the tabs.

import { askCancel, askRetry, askSuspend, graphSubject, resume } from "./actions.js";
import { Actions, Button } from "./controls.js";
import { plural } from "./format.js";
import { live } from "./live.js";
import { useResource } from "./resource.js";
import { address, link } from "./routes.js";
import { Heading, Missing, Progress, State, suspensionText } from "./ui.js";
import { h } from "./preact.js";

/** @type {[Page.Route["view"], string, string][]} */
const tabs = [
    ["graph", "", "Overview"],
    ["operations", "operations", "Operations"],
    ["picture", "picture", "Picture"],
    ["timeline", "timeline", "Timeline"],
];

/**
 * The graph of an address, as new as it can be had.
 * @param {string} name its number or its name
 * @returns {{graph?: Api.Graph, error?: Error}}
 */
export function useGraph(name) {
    /** @type {import("./resource.js").Resource<Api.Graph>} */
    const { value, error } = useResource(address(["graphs", name]), { isFixed: true });
    return { graph: live.use().progress?.graph ?? value, error };
}

/**
 * A view of a graph.
 * @param {{route: Page.Route,
 *     children: (graph: Api.Graph) => import("../preact").Child}} props
 */
export function GraphFrame({ route, children }) {
    const name = route.graph ?? "";
    const { graph, error } = useGraph(name);
    if (!graph) {
        return h("div", null, h(Heading, { title: `Graph ${name}` }), h(Missing, { error }));
    }
    const current = tabs.find(([view]) => view === route.view) ?? tabs[0];
    const title = graph.name + (current[1] ? `: ${current[2].toLowerCase()}` : "");
    return h("div", null,
        h("p", { class: "path" }, h("a", { href: link(["graphs"]) }, "Graphs"), " / ",
            String(graph.id)),
        h(Heading, { title }, h(State, { state: graph.status }), h(GraphActions, { graph })),
        h("div", { class: "summary", id: "graph-progress" },
            h(Progress, { counts: graph.counts, label: "Progress of the graph" }),
            graph.awaitingCompletion
                ? h("span", { class: "soft", "data-test": "approvals" }, "waits for ",
                    plural(graph.awaitingCompletion, "approval")) : null,
            graph.suspension
                ? h("span", { class: "soft" }, suspensionText(graph.suspension)) : null,
            graph.cancelReason
                ? h("span", { class: "soft" }, `reason: ${graph.cancelReason}`) : null),
        h("nav", { class: "tabs", "aria-label": "Views of the graph" },
            tabs.map(([view, part, text]) => h("a", {
                key: view, href: link(["graphs", name, ...(part ? [part] : [])]),
                "data-test": `tab-${view}`,
                "aria-current": view === route.view ? "page" : undefined,
            }, text))),
        children(graph));
}

/** @param {{graph: Api.Graph}} props */
function GraphActions({ graph }) {
    const subject = graphSubject(graph);
    const { counts, status } = graph;
    const isEnded = ["finished", "failed", "cancelled"].includes(status);
    const canRetry = counts.failed + counts.cancelled > 0;
    const cancel = isEnded ? null : h(Button, {
        name: "cancel", isDangerous: true, onClick: () => askCancel(subject),
    }, "Cancel");
    const { submittedBy } = graph;
    return h(Actions, { label: "Actions on the graph", cancel, submittedBy },
        isEnded ? null : graph.suspension || status === "suspended"
            ? h(Button, { name: "resume", onClick: () => resume(subject) }, "Resume")
            : h(Button, { name: "suspend", onClick: () => askSuspend(subject) }, "Suspend"),
        canRetry ? h(Button, { name: "retry", onClick: () => askRetry(graph) }, "Retry") : null);
}
