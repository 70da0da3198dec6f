// The list of graphs, the newest first.

import { Choice, Filters, Pager, TextFilter } from "./controls.js";
import { plural } from "./format.js";
import { useResource } from "./resource.js";
import { address, link } from "./routes.js";
import { Duration, Heading, Missing, Progress, State, table, Time } from "./ui.js";
import { h } from "./preact.js";

const statuses = /** @type {const} */ ([
    "running", "suspended", "cancelling", "idle", "finished", "failed", "cancelled",
]);

/** How many graphs a page has. */
const limit = 50;

/** @type {Page.Column<Api.Graph>[]} */
const columns = [
    { title: "Graph", isWide: true, cell: ({ id, name }) => (
        h("a", { href: link(["graphs", id]), class: "name" },
            h("span", { class: "soft" }, `${id} `), h("bdi", null, name))) },
    { title: "Status", cell: ({ status, awaitingCompletion }) => [
        h(State, { state: status }),
        awaitingCompletion
            ? h("span", { class: "soft" }, ` ${plural(awaitingCompletion, "approval")}`) : null,
    ] },
    { title: "Done", cell: ({ counts, name }) => (
        h(Progress, { counts, label: `Progress of ${name}` })) },
    { title: "Failed", isNumber: true, cell: ({ counts }) => (
        counts.failed > 0 ? h("span", { class: "state failed" }, String(counts.failed)) : "0") },
    { title: "Submitted", cell: ({ submittedAt }) => h(Time, { at: submittedAt }) },
    { title: "Took", isNumber: true, cell: ({ submittedAt, finishedAt }) => (
        h(Duration, { from: submittedAt, to: finishedAt })) },
];

/** @param {{route: Page.Route}} props */
export function GraphsView({ route }) {
    const { query } = route;
    const parts = ["graphs"];
    /** @type {import("./resource.js").Resource<Api.GraphPage>} */
    const { value: page, error, isOld } = useResource(address(parts, {
        status: query.status, name: query.name, after: query.after, limit,
    }));
    const isFiltered = Boolean(query.status || query.name || query.after);
    return h("div", null,
        h(Heading, { title: "Graphs" }),
        h(Filters, { label: "Graphs" },
            h(TextFilter, { label: "Exact name", name: "name", parts, query, isFirst: true }),
            h(Choice, { label: "Status", name: "status", parts, query, options: statuses,
                all: "any" })),
        page && !error
            ? [table({
                id: "graphs", caption: "Graphs", columns, items: page.graphs, isBusy: isOld,
                keyOf: (graph) => graph.id,
                empty: isFiltered
                    ? "No graph has this name and this status."
                    : "There are no graphs yet. To submit one: operon submit FILE",
            }), h(Pager, { parts, query, next: page.next })]
            : h(Missing, { error }));
}
