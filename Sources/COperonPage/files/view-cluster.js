// The cluster: whether it is well, how fast it is, what its operations ask for.

import { amount, brief, finished, pace, total } from "./format.js";
import { live } from "./live.js";
import { observable } from "./observable.js";
import { useResource } from "./resource.js";
import { address } from "./routes.js";
import { Counts, Duration, Facts, Heading, Missing, Section, State, table, Time } from "./ui.js";
import { h, useEffect } from "./preact.js";

/** Seconds that the rates look back. */
const span = 10;

/**
 * @typedef {{at: number, events: number, done: number, added: number, latency?: Api.Latency}} Sample
 */

/** @type {Sample[]} */
let samples = [];
/** Epoch of the samples: after a restart, the numbers begin again. */
let epoch = -1;

/**
 * How much happened in a second, lately, and how many seconds it took.
 * @typedef {{events: number, done: number, added: number, dispatch?: number, sync?: number}} Rates
 */
const rates = observable(/** @type {Rates | undefined} */ (undefined));

/**
 * The mean between two sums. Missing: it was not done between them.
 * @param {Api.DurationSum} [first]
 * @param {Api.DurationSum} [last]
 */
function mean(first, last) {
    const count = (last?.count ?? 0) - (first?.count ?? 0);
    return first && last && count > 0 ? (last.seconds - first.seconds) / count : undefined;
}

/** @param {Api.Cluster} status */
function sample(status) {
    if (status.epoch !== epoch) samples = [];
    epoch = status.epoch;
    const at = Date.parse(status.now) / 1000;
    const last = samples[samples.length - 1];
    if (last && at <= last.at) return;
    samples.push({ at, events: status.lastEvent, done: finished(status.counts),
        added: total(status.counts), latency: status.latency });
    while (samples.length > 2 && samples[1].at < at - span) samples.shift();
    if (samples.length > 100) samples.shift();
    const [first] = samples;
    const seconds = at - first.at;
    // Finished graphs are dropped one day, and their operations no longer count.
    const perSecond = (/** @type {"events" | "done" | "added"} */ name) => (
        Math.max(0, samples[samples.length - 1][name] - first[name]) / seconds);
    const latency = samples[samples.length - 1].latency;
    rates.set(seconds < 1 ? undefined : {
        events: perSecond("events"), done: perSecond("done"), added: perSecond("added"),
        dispatch: mean(first.latency?.dispatch, latency?.dispatch),
        sync: mean(first.latency?.sync, latency?.sync),
    });
}

live.subscribe(() => {
    const { status } = live.get();
    if (status) sample(status);
});

/** @type {Page.Column<Api.Demand>[]} */
const demandColumns = [
    { title: "What they ask for", isWide: true, cell: ({ text }) => text },
    { title: "Ready", isNumber: true, cell: ({ ready }) => String(ready) },
    { title: "Running", isNumber: true, cell: ({ inFlight }) => String(inFlight) },
    { title: "No worker for", isNumber: true, cell: ({ unrunnable }) => (
        unrunnable > 0 ? h("span", { class: "state failed" }, String(unrunnable)) : "0") },
    { title: "Missing", isWide: true, cell: ({ missing }) => missing },
];

export function ClusterView() {
    // The stream tells only changes; this asks also while nothing happens.
    /** @type {import("./resource.js").Resource<Api.Cluster>} */
    const { value, error } = useResource(address(["status"]), { every: 5 });
    useEffect(() => {
        if (value) sample(value);
    }, [value]);
    const known = rates.use();
    if (!value) return h("div", null, h(Heading, { title: "Cluster" }), h(Missing, { error }));
    const demands = value.demands ?? [];
    return h("div", null,
        h(Heading, { title: "Cluster" }),
        h(Section, { title: "Health", id: "health" }, h(Facts, { id: "cluster-facts", facts: [
            ["Store", h(Health, { text: value.store, id: "store" })],
            ["Broker", h(Health, { id: "broker", text: value.broker === "none"
                ? "none: operations run in the coordinator’s process" : value.broker,
            isWell: value.broker === "none" ? true : undefined })],
            ["Workers", String(value.workers)],
            ["Slots", `${value.busySlots} of ${value.slots} busy`],
            ["Unfinished graphs", String(value.openGraphs)],
            ["Version", value.version],
            ["Up", h(Duration, { from: value.startedAt })],
            ["Started", h(Time, { at: value.startedAt })],
            ["Epoch", String(value.epoch)],
            ["Reign", value.reign],
        ] })),
        h(Section, { title: `Rates in the last ${span}s`, id: "rates" },
            h(Facts, { id: "rate-facts", facts: [
                ["Operations finished", pace(known?.done ?? 0)],
                ["Operations added", pace(known?.added ?? 0)],
                ["Events", pace(known?.events ?? 0)],
                ["Last event", String(value.lastEvent)],
            ] })),
        h(Section, { title: `Means of the last ${span}s`, id: "latency" },
            h(Facts, { id: "latency-facts", facts: [
                ["Dispatch (decision to start)", brief(known?.dispatch)],
                ["Write to the disk", brief(known?.sync)],
            ] })),
        h(Section, { title: "Operations", id: "operations-section" },
            h(Counts, { counts: value.counts })),
        h(Section, { title: "Resources", id: "resources-section" },
            h(Facts, { id: "resource-facts", facts: (value.resources ?? []).map(freeText) })),
        h(Section, { title: "Demands", id: "demands-section" },
            table({ id: "demands", caption: "Demands", columns: demandColumns, items: demands,
                keyOf: ({ text, workers }) => `${text} ${workers}`,
                empty: "No operation waits for a worker or runs on one." }),
            value.moreDemands ? h("p", { class: "soft" }, `${value.moreDemands} more are left out.`)
                : null));
}

/**
 * @param {Api.Resource} resource
 * @returns {[string, string]}
 */
function freeText({ name, free, offered }) {
    return [name, `${amount(free, name)} of ${amount(offered, name)} free`];
}

/** @param {{text: string, id: string, isWell?: boolean}} props */
function Health({ text, id, isWell = text === "ok" }) {
    return h("span", { id, "data-well": String(isWell) },
        isWell ? text : [h(State, { state: "failed" }), `: ${text}`]);
}
