// A graph: how far it is, what runs longest, its operations.

import { GraphFrame } from "./graph-frame.js";
import { clock, countsText, pace, percent, short } from "./format.js";
import { live } from "./live.js";
import { OperationsTable } from "./operations-table.js";
import { paceOf } from "./pace.js";
import { link } from "./routes.js";
import {
    Counts, Duration, Facts, OperationLink, Progress, Section, table, Time, useSeconds,
} from "./ui.js";
import { h, useEffect, useState } from "./preact.js";

/** States that are outcomes: the list of operations filters these by another parameter. */
const outcomes = ["succeeded", "failed", "cancelled", "skipped"];

/** @param {{route: Page.Route}} props */
export function GraphView({ route }) {
    const name = route.graph ?? "";
    const parts = ["graphs", name];
    return h(GraphFrame, {
        route, children: (graph) => [
            h(Summary, { graph, name }),
            h(Running, { graph }),
            h(Repeated, null),
            h(Section, { title: "Operations", id: "operations-section" },
                h(OperationsTable, { parts: [...parts, "operations"], page: parts,
                    query: route.query, limit: 50 })),
        ],
    });
}

/** @param {{route: Page.Route}} props */
export function OperationsView({ route }) {
    const parts = ["graphs", route.graph ?? "", "operations"];
    return h(GraphFrame, {
        route, children: () => h(OperationsTable, {
            parts, page: parts, query: route.query, limit: 200,
        }),
    });
}

/** @param {{graph: Api.Graph, name: string}} props */
function Summary({ graph, name }) {
    const isRunning = graph.finishedAt === undefined;
    useSeconds(isRunning);
    const known = isRunning ? paceOf(graph) : undefined;
    const link_ = (/** @type {string} */ state) => link(["graphs", name, "operations"],
        outcomes.includes(state) ? { outcome: state } : { state });
    return h("section", { id: "summary", "aria-label": "Summary" },
        h(Announcement, { graph }),
        h(Counts, { counts: graph.counts, href: link_ }),
        h(Facts, { id: "graph-facts", facts: [
            ["Submitted", h(Time, { at: graph.submittedAt })],
            ["By", graph.submittedBy],
            ["Finished", graph.finishedAt && h(Time, { at: graph.finishedAt })],
            [isRunning ? "Running for" : "Took",
                h(Duration, { from: graph.submittedAt, to: graph.finishedAt })],
            ["Open", graph.isOpen && "operations may be added"],
            ["Pace", known && h("span", { id: "pace" },
                `${pace(known.perSecond)} in the last ${short(known.seconds)}`)],
            ["Time left", known?.left !== undefined && h("span", { id: "eta" },
                `about ${clock(known.left)} at this pace`)],
            ["Exit code", graph.exitCode === undefined ? undefined : String(graph.exitCode)],
        ] }));
}

/**
 * Tells screen readers how far the graph is, but not more often than every 20 s.
 * @param {{graph: Api.Graph}} props
 */
function Announcement({ graph }) {
    const text = `${graph.status}, ${percent(graph.counts)} percent done: `
        + countsText(graph.counts);
    const [said, say] = useState("");
    useEffect(() => {
        const timer = setInterval(() => {
            const now = live.get().progress?.graph;
            if (now) {
                say(`${now.status}, ${percent(now.counts)} percent done: `
                    + countsText(now.counts));
            }
        }, 20_000);
        return () => clearInterval(timer);
    }, []);
    useEffect(() => {
        if (graph.finishedAt) say(text);
    }, [graph.finishedAt]);
    return h("p", { class: "only-read", "aria-live": "polite" }, said);
}

/** @param {{graph: Api.Graph}} props */
function Running({ graph }) {
    const running = live.use().progress?.running ?? [];
    if (running.length === 0) return null;
    /** @type {Page.Column<Api.RunningOperation>[]} */
    const columns = [
        { title: "Operation", isWide: true, cell: ({ name, index }) => h(OperationLink, {
            operation: { graph: graph.id, name, index: index ?? -1 } }) },
        { title: "Who runs it", cell: ({ isExternal }) => (
            isExternal ? "somebody outside completes it" : "a worker") },
        { title: "Since", cell: ({ startedAt }) => h(Time, { at: startedAt }) },
        { title: "Runs for", isNumber: true, cell: ({ startedAt }) => (
            h(Duration, { from: startedAt })) },
    ];
    return h(Section, { title: "Running longest", id: "running-section" },
        table({ id: "running", caption: "Running longest", columns, items: running,
            keyOf: ({ name }) => name, empty: "" }));
}

function Repeated() {
    const repeated = live.use().progress?.repeated ?? [];
    if (repeated.length === 0) return null;
    /** @type {Page.Column<Api.RepeatedProgress>[]} */
    const columns = [
        { title: "Name", isWide: true, cell: ({ name }) => h("bdi", null, name) },
        { title: "Done", cell: ({ name, counts }) => (
            h(Progress, { counts, label: `Progress of ${name}` })) },
        { title: "Elements", isWide: true, cell: ({ counts }) => countsText(counts) },
    ];
    return h(Section, { title: "Repeated operations", id: "repeated-section" },
        table({ id: "repeated", caption: "Repeated operations", columns, items: repeated,
            keyOf: ({ name }) => name, empty: "" }));
}
