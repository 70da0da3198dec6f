// The workers: their slots, what they run, what they offer.

import { askDrain } from "./actions.js";
import { Actions, Button } from "./controls.js";
import { amount, plural, short } from "./format.js";
import { useResource } from "./resource.js";
import { address, link } from "./routes.js";
import { Duration, Heading, Missing, OperationLink, table, Time } from "./ui.js";
import { h } from "./preact.js";

/** Workers that are drawn at most. */
const most = 500;

/** The sign of each status: one that a state of operations has, too. */
const signs = { alive: "succeeded", draining: "cancelled", gone: "failed" };

/** @type {Page.Column<Api.Worker>[]} */
const columns = [
    { title: "Worker", isWide: true, cell: ({ name, host }) => [
        h("bdi", { class: "name" }, name), h("span", { class: "soft" }, ` on ${host}`)] },
    { title: "Status", cell: ({ status }) => h("span", {
        class: `state ${signs[status] ?? "other"}`, "data-state": status }, status) },
    { title: "Slots", cell: (worker) => h(Slots, { worker }) },
    { title: "Runs", isWide: true, cell: ({ running = [] }) => running.map((one) => (
        h("div", { key: `${one.operation.graph}/${one.operation.index}` },
            h(OperationLink, { operation: one.operation, isWhole: true }), " ",
            h(Duration, { from: one.startedAt })))) },
    { title: "Since", cell: ({ since }) => (since ? h(Time, { at: since }) : null) },
    { title: "Free resources", cell: ({ resources = [], enforces }) => [
        resources.map(({ name, free, offered }) => h("div", { key: name },
            `${name} ${amount(free, name)} of ${amount(offered, name)}`)),
        enforces ? h("div", null, "enforced") : null] },
    { title: "Labels", isWide: true, cell: ({ labels = {}, name }) => (
        Object.entries(labels).filter(([label, value]) => label !== "name" || value !== name)
            .map(([label, value]) => h("div", { key: label }, `${label}=${value}`))) },
    { title: "Queues", cell: ({ queues }) => (queues.length === 0 ? "all"
        : queues.map((queue, place) => [place > 0 ? ", " : "",
            h("a", { href: link(["queues", queue]) }, h("bdi", null, queue))])) },
    { title: "Kinds", isWide: true, cell: ({ kinds, runsAnyKind }) => (
        runsAnyKind ? "any" : kinds.join(", ")) },
    { title: "Heard", isNumber: true, cell: ({ heardSecondsAgo }) => (
        `${short(heardSecondsAgo)} ago`) },
    { title: "Actions", cell: (worker) => h(Actions, { label: `Actions on worker ${worker.name}` },
        h(Button, {
            name: "drain", label: `Drain worker ${worker.name}`, isDangerous: true,
            isDisabled: worker.status !== "alive", onClick: () => askDrain(worker),
        }, "Drain")) },
];

/** @param {{worker: Api.Worker}} props */
function Slots({ worker: { slots, busySlots, name } }) {
    return h("span", { class: "progress" },
        h("meter", { min: 0, max: Math.max(1, slots), value: busySlots,
            "aria-label": `Busy slots of ${name}` }),
        h("span", { class: "share" }, `${busySlots} of ${slots} busy`));
}

export function WorkersView() {
    // Nothing else says that a worker was heard again.
    /** @type {import("./resource.js").Resource<Api.Workers>} */
    const { value, error } = useResource(address(["workers"]), { every: 5 });
    const workers = value?.workers ?? [];
    const slots = workers.reduce((sum, worker) => sum + worker.slots, 0);
    const busy = workers.reduce((sum, worker) => sum + worker.busySlots, 0);
    return h("div", null,
        h(Heading, { title: "Workers" }),
        value
            ? [h("p", { class: "soft", id: "workers-summary" },
                `${plural(workers.length, "worker")}, ${busy} of ${slots} slots busy`
                + (workers.length > most ? `; the first ${most} are shown` : "")),
            table({ id: "workers", caption: "Workers", columns, items: workers.slice(0, most),
                keyOf: ({ id }) => id, empty: "There are no workers." })]
            : h(Missing, { error }));
}
