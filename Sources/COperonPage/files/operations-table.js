// The table of the operations of a graph or of a queue.

import { Choice, Filters, Pager, TextFilter } from "./controls.js";
import { stateOf } from "./format.js";
import { useResource } from "./resource.js";
import { address, link } from "./routes.js";
import { Missing, OperationLink, State, table, Time } from "./ui.js";
import { h } from "./preact.js";

const states = ["pending", "ready", "dispatched", "executing", "finished"];
const outcomes = ["succeeded", "failed", "cancelled", "skipped"];

/** @type {Page.Column<Api.Operation>[]} */
const columns = [
    { title: "Operation", isWide: true, cell: (operation) => (
        h(OperationLink, { operation })) },
    { title: "State", cell: (operation) => h(State, { state: stateOf(operation) }) },
    { title: "Detail", isWide: true, cell: (operation) => detail(operation) },
    { title: "Queue", cell: ({ queue }) => (
        h("a", { href: link(["queues", queue]) }, h("bdi", null, queue))) },
    { title: "Priority", cell: ({ priority }) => priority },
    { title: "Attempts", isNumber: true, cell: ({ attempts }) => String(attempts) },
    { title: "Finished", cell: ({ finishedAt }) => (
        finishedAt ? h(Time, { at: finishedAt }) : "") },
];

/** @type {Page.Column<Api.Operation>} */
const wholeName = {
    title: "Operation", isWide: true, cell: (operation) => (
        h(OperationLink, { operation, isWhole: true })),
};

/**
 * Why it ended as it did, or how far it is.
 * @param {Api.Operation} operation
 */
export function detail(operation) {
    const { outcome, error, reason, skippedFor, progress } = operation;
    if (outcome === "failed") return error?.message ?? "";
    if (outcome === "cancelled") return reason ?? "";
    if (outcome === "skipped") {
        if (!skippedFor) return "";
        return h("span", null, "because of ",
            h(OperationLink, { operation: skippedFor,
                isWhole: skippedFor.graph !== operation.graph }));
    }
    if (outcome === "succeeded") return operation.isUpToDate ? "its files were up to date" : "";
    if (operation.isCancelRequested) return "asked to stop";
    if (operation.kind === "external" && operation.state === "executing") return "external";
    if (!progress) return "";
    return `${Math.floor(progress.fraction * 100)} %${progress.text ? ` ${progress.text}` : ""}`;
}

/**
 * @param {{parts: (string | number)[], page: (string | number)[], query: Record<string, string>,
 *     limit: number, isOfQueue?: boolean}} props `parts`: the address of the API; `page`: that of
 *     the view, whose query has the filters
 */
export function OperationsTable({ parts, page, query, limit, isOfQueue = false }) {
    /** @type {import("./resource.js").Resource<Api.OperationPage>} */
    const { value, error, isOld } = useResource(address(parts, {
        state: query.state, outcome: query.outcome, after: query.after, limit,
        namePrefix: query.prefix,
        queue: isOfQueue ? undefined : query.queue, box: isOfQueue ? undefined : query.box,
    }));
    const isFiltered = Object.values(query).some(Boolean);
    const common = { parts: page, query };
    return h("div", { class: "list" },
        h(Filters, { label: "Operations" },
            h(TextFilter, { ...common, label: "Name begins with", name: "prefix", isFirst: true }),
            h(Choice, { ...common, label: "State", name: "state", options: states, all: "any" }),
            h(Choice, { ...common, label: "Outcome", name: "outcome", options: outcomes,
                all: "any" }),
            isOfQueue ? null : h(TextFilter, { ...common, label: "Queue", name: "queue" })),
        value && !error
            ? [value.box === undefined ? null : h(Boxed, { title: value.box, page, query }),
            table({
                id: "operations", caption: "Operations", items: value.operations, isBusy: isOld,
                columns: isOfQueue ? [wholeName, ...columns.slice(1)] : columns,
                keyOf: (operation) => `${operation.graph}/${operation.index}`,
                empty: isFiltered ? "No operation matches the filter."
                    : "There are no operations.",
            }), h(Pager, { ...common, next: value.next })]
            : [h(Missing, { error }),
                error && query.box ? h(AllOperations, { page, query }) : null]);
}

/**
 * What is said if only the operations of a box of the picture are listed.
 * @param {{title: string, page: (string | number)[], query: Record<string, string>}} props
 */
function Boxed({ title, page, query }) {
    return h("p", { "data-test": "boxed" }, "Showing only the operations in box ",
        h("bdi", null, title), " of the picture. ", h(AllOperations, { page, query }));
}

/** @param {{page: (string | number)[], query: Record<string, string>}} props */
function AllOperations({ page, query }) {
    return h("a", { href: link(page, { ...query, box: undefined, after: undefined }) },
        "List all operations");
}
