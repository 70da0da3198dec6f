// The queues and the keys: limits, who holds them, who waits.

import { askCancel, askSuspend, queueSubject, resume } from "./actions.js";
import { askKeyLimits, askQueueLimits } from "./actions-queues.js";
import { Actions, Button, Filters, TextFilter } from "./controls.js";
import { OperationsTable } from "./operations-table.js";
import { useResource } from "./resource.js";
import { address, link } from "./routes.js";
import {
    Facts, Heading, Missing, OperationLink, Section, State, table, suspensionText,
} from "./ui.js";
import { h } from "./preact.js";

/** How many queues and keys are drawn; the filter finds the others. */
const most = 200;

/** @param {{rate?: string, burst?: number}} settings */
function rateText({ rate, burst }) {
    if (!rate) return "none";
    return burst && burst > 1 ? `${rate}, ${burst} at once after a pause` : rate;
}

/** @param {{queue: Api.Queue}} props */
function QueueState({ queue }) {
    if (!queue.isSuspended) return h("span", { class: "soft" }, "active");
    const text = suspensionText(queue.suspension).replace(/^suspended/, "");
    return h("span", null, h(State, { state: "suspended" }), text);
}

/** @type {Page.Column<Api.Queue>[]} */
const queueColumns = [
    { title: "Queue", isWide: true, cell: ({ name }) => (
        h("a", { href: link(["queues", name]), class: "name" }, h("bdi", null, name))) },
    { title: "Ready", isNumber: true, cell: ({ ready }) => String(ready) },
    { title: "Running", isNumber: true, cell: ({ inFlight }) => String(inFlight) },
    { title: "Unfinished", isNumber: true, cell: ({ unfinished }) => String(unfinished) },
    { title: "Limit", isNumber: true, cell: (queue) => (
        String(queue.maxConcurrentOperationCount ?? "none")) },
    { title: "Rate", cell: rateText },
    { title: "Priority", cell: ({ priority }) => priority },
    { title: "State", cell: (queue) => h(QueueState, { queue }) },
    { title: "Actions", cell: (queue) => h(QueueActions, { queue }) },
];

/** @param {{listed: Api.OperationName[], count: number}} props */
function Operations({ listed, count }) {
    if (listed.length === 0) return h("span", { class: "soft" }, "none");
    const links = listed.map((operation, place) => [place > 0 ? ", " : "",
        h(OperationLink, { operation, isWhole: true })]);
    return h("span", null, links,
        count > listed.length ? ` and ${count - listed.length} more` : null);
}

/** @type {Page.Column<Api.Key>[]} */
const keyColumns = [
    { title: "Key", isWide: true, cell: ({ name }) => h("bdi", null, name) },
    { title: "Limit", isNumber: true, cell: ({ limit }) => String(limit) },
    { title: "Held", isNumber: true, cell: ({ held }) => String(held) },
    { title: "Waiting", isNumber: true, cell: ({ waiting }) => String(waiting) },
    { title: "Rate", cell: rateText },
    { title: "Holders", isWide: true, cell: ({ holders, held }) => (
        h(Operations, { listed: holders, count: held })) },
    { title: "Who waits", isWide: true, cell: ({ waiters, waiting }) => (
        h(Operations, { listed: waiters ?? [], count: waiting })) },
    { title: "Actions", cell: (key) => h(Actions, { label: `Actions on key ${key.name}` },
        h(Button, { name: "key-limits", label: `Limits of key ${key.name}`,
            onClick: () => askKeyLimits(key) }, "Limits")) },
];

/** @param {{queue: Api.Queue}} props */
function QueueActions({ queue }) {
    const subject = queueSubject(queue);
    const { name } = queue;
    return h(Actions, { label: `Actions on queue ${name}` },
        h(Button, { name: "queue-limits", label: `Limits of queue ${name}`,
            onClick: () => askQueueLimits(queue) }, "Limits"),
        queue.isSuspended
            ? h(Button, { name: "resume", label: `Resume queue ${name}`,
                onClick: () => resume(subject) }, "Resume")
            : h(Button, { name: "suspend", label: `Suspend queue ${name}`,
                onClick: () => askSuspend(subject) }, "Suspend"),
        queue.unfinished > 0
            ? h(Button, { name: "cancel", label: `Cancel the operations of queue ${name}`,
                isDangerous: true, onClick: () => askCancel(subject) }, "Cancel")
            : null);
}

/** @param {{route: Page.Route}} props */
export function QueuesView({ route }) {
    const { query } = route;
    /** @type {import("./resource.js").Resource<Api.Queues>} */
    const queues = useResource(address(["queues"]));
    /** @type {import("./resource.js").Resource<Api.Keys>} */
    const keys = useResource(address(["keys"]));
    return h("div", null,
        h(Heading, { title: "Queues and keys" }),
        h(Filters, { label: "Queues and keys" },
            h(TextFilter, { label: "Name contains", name: "name", parts: ["queues"], query,
                isFirst: true })),
        h(Section, { title: "Queues", id: "queues-section" }, queues.value
            ? h(Named, { id: "queues", caption: "Queues", columns: queueColumns,
                items: queues.value.queues, query, empty: "There are no queues yet." })
            : h(Missing, { error: queues.error })),
        h(Section, { title: "Keys", id: "keys-section" }, keys.value
            ? h(Named, { id: "keys", caption: "Keys", columns: keyColumns,
                items: keys.value.keys, query, empty: "No operation has asked for a key." })
            : h(Missing, { error: keys.error })));
}

/**
 * A table of things with names, of which the filter chooses some.
 * @template {{name: string}} T
 * @param {{id: string, caption: string, columns: Page.Column<T>[], items: T[],
 *     query: Record<string, string>, empty: string}} props
 */
function Named({ id, caption, columns, items, query, empty }) {
    const chosen = items.filter(({ name }) => name.includes(query.name ?? ""));
    return h("div", null,
        table({ id, caption, columns, items: chosen.slice(0, most), keyOf: ({ name }) => name,
            empty: items.length === 0 ? empty : "No name contains this text." }),
        chosen.length > most
            ? h("p", { class: "soft" },
                `${chosen.length - most} more are left out: use the filter.`)
            : null);
}

/** @param {{route: Page.Route}} props */
export function QueueView({ route }) {
    const name = route.name ?? "";
    const parts = ["queues", name];
    /** @type {import("./resource.js").Resource<Api.Queue>} */
    const { value: queue, error } = useResource(address(parts));
    return h("div", null,
        h("p", { class: "path" },
            h("a", { href: link(["queues"]) }, "Queues and keys"), " / queue"),
        h(Heading, { title: name }, queue ? h(QueueActions, { queue }) : null),
        queue
            ? h(Facts, { id: "queue-facts", facts: [
                ["State", h(QueueState, { queue })],
                ["Ready", String(queue.ready)],
                ["Running", String(queue.inFlight)],
                ["Unfinished", String(queue.unfinished)],
                ["Limit", String(queue.maxConcurrentOperationCount ?? "none")],
                ["Rate", rateText(queue)],
                ["Priority", queue.priority],
            ] })
            : h(Missing, { error }),
        h(Section, { title: "Operations in the queue", id: "operations-section" },
            h("p", { class: "soft" }, route.query.state || route.query.outcome
                ? "Of all graphs." : "The unfinished ones, of all graphs."),
            h(OperationsTable, { parts: [...parts, "operations"], page: parts, query: route.query,
                limit: 100, isOfQueue: true })));
}
