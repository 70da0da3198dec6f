// The triggers: what fires them, when next, and what became of their firings.

import { askFire, askSuspendTrigger, resumeTrigger } from "./actions-queues.js";
import { Actions, Button, Filters, TextFilter } from "./controls.js";
import { localTime, short, zonedTime } from "./format.js";
import { useResource } from "./resource.js";
import { address, link } from "./routes.js";
import { Facts, Heading, Missing, Section, State, table, Time, suspensionText } from "./ui.js";
import { h } from "./preact.js";

/** Triggers that are drawn; the filter finds the others. */
const most = 200;
/** Seconds: nothing tells that a trigger was added, has fired or was removed. */
const every = 5;

/** @type {Page.Column<Api.Trigger>[]} */
const columns = [
    { title: "Trigger", isWide: true, cell: ({ name }) => (
        h("a", { href: link(["triggers", name]), class: "name" }, h("bdi", null, name))) },
    { title: "On", isWide: true, cell: ({ on }) => on },
    { title: "Status", cell: (trigger) => h(TriggerState, { trigger }) },
    { title: "Next", cell: ({ nextAt }) => nextAt && h(Time, { at: nextAt }) },
    { title: "Last firing", cell: ({ last }) => (
        last ? h(FiringState, { firing: last }) : h("span", { class: "soft" }, "none")) },
    { title: "Firings", isNumber: true, cell: ({ firings }) => String(firings) },
    { title: "Actions", cell: (trigger) => h(TriggerActions, { trigger }) },
];

/** @param {{trigger: Api.Trigger}} props */
function TriggerState({ trigger }) {
    const { status, problem } = trigger;
    return h("span", null, status === "active" ? "active" : h(State, { state: status }),
        problem ? h("span", { class: "state failed" }, " has a problem") : null);
}

/** @param {{firing: Api.Firing}} props */
function FiringState({ firing }) {
    const graph = firing.graph === undefined ? null : [", ",
        h("a", { href: link(["graphs", firing.graph]) }, `graph ${firing.graph}`)];
    const merged = firing.mergedInto === undefined ? "" : ` into firing ${firing.mergedInto}`;
    const isOutcome = firing.status === "ended" && firing.outcome !== undefined;
    return h("span", null,
        isOutcome ? h(State, { state: firing.outcome ?? "" }) : firing.status + merged, graph);
}

/**
 * The identity of a firing: of a tick, its time.
 * @param {{firing: Api.Firing}} props
 */
function Identity({ firing: { identity, plannedAt } }) {
    return identity === plannedAt ? h(Time, { at: identity }) : h("bdi", null, identity);
}

/** @param {{trigger: Api.Trigger}} props */
function TriggerActions({ trigger }) {
    const { name, status, source } = trigger;
    return h(Actions, { label: `Actions on trigger ${name}` },
        source === "event"
            ? h(Button, { name: "fire", label: `Fire trigger ${name}`,
                isDisabled: status === "ended", onClick: () => askFire(trigger) }, "Fire")
            : null,
        status === "ended" ? null : status === "suspended"
            ? h(Button, { name: "resume", label: `Resume trigger ${name}`,
                onClick: () => resumeTrigger(trigger) }, "Resume")
            : h(Button, { name: "suspend", label: `Suspend trigger ${name}`,
                onClick: () => askSuspendTrigger(trigger) }, "Suspend"));
}

/** @param {{route: Page.Route}} props */
export function TriggersView({ route }) {
    const { query } = route;
    /** @type {import("./resource.js").Resource<Api.Triggers>} */
    const { value, error } = useResource(address(["triggers"]), { every });
    const chosen = value?.triggers.filter(({ name }) => name.includes(query.name ?? "")) ?? [];
    return h("div", null,
        h(Heading, { title: "Triggers" }),
        h(Filters, { label: "Triggers" },
            h(TextFilter, { label: "Name contains", name: "name", parts: ["triggers"], query,
                isFirst: true })),
        value
            ? [table({ id: "triggers", caption: "Triggers", columns,
                items: chosen.slice(0, most), keyOf: ({ name }) => name,
                empty: value.triggers.length === 0
                    ? "There are no triggers yet. To add one: operon trigger add FILE"
                    : "No name contains this text." }),
            chosen.length > most ? h("p", { class: "soft" },
                `${chosen.length - most} more are left out: use the filter.`) : null]
            : h(Missing, { error }));
}

/** @param {{route: Page.Route}} props */
export function TriggerView({ route }) {
    const name = route.name ?? "";
    const parts = ["triggers", name];
    /** @type {import("./resource.js").Resource<Api.Trigger>} */
    const { value: trigger, error } = useResource(address(parts), { every });
    return h("div", null,
        h("p", { class: "path" }, h("a", { href: link(["triggers"]) }, "Triggers"), " / trigger"),
        h(Heading, { title: name }, trigger ? h(TriggerActions, { trigger }) : null),
        trigger && !error
            ? [trigger.problem ? h("p", { class: "refused" }, trigger.problem) : null,
                h(TriggerFacts, { trigger }), h(Why, { parts }), h(Next, { parts }),
                h(History, { parts })]
            : h(Missing, { error }));
}

/** @param {{trigger: Api.Trigger}} props */
function TriggerFacts({ trigger }) {
    const { status } = trigger;
    return h(Facts, { id: "trigger-facts", facts: [
        ["On", trigger.on],
        ["Graph", trigger.graph],
        ["Status", status === "suspended" ? suspensionText(trigger.suspension) : status],
        ["Next", trigger.nextAt && h(Time, { at: trigger.nextAt })],
        ["Firings", String(trigger.firings)],
        ["Open firings", String(trigger.open)],
        ["Overlap", trigger.overlap],
        ["Missed ticks", trigger.missed],
        ["Merge", trigger.merge],
        ["Coalesce", trigger.coalesce === undefined ? undefined : short(trigger.coalesce)],
        ["Until", trigger.until && h(Time, { at: trigger.until })],
        ["Limit", trigger.limit === undefined ? undefined : String(trigger.limit)],
        ["Watch", trigger.watch && trigger.watch
            + (trigger.watchedBy ? ` by ${trigger.watchedBy}` : "")],
        ["Added", h(Time, { at: trigger.addedAt })],
        ["By", trigger.addedBy],
    ] });
}

/** @param {{parts: string[]}} props */
function Why({ parts }) {
    /** @type {import("./resource.js").Resource<Api.TriggerExplanation>} */
    const { value } = useResource(address([...parts, "explain"]), { every });
    if (!value || value.reasons.length === 0) return null;
    return h(Section, { title: "Explanation", id: "explain" },
        h("ul", { class: "reasons" }, value.reasons.map(({ code, text, until, graph }) => (
            h("li", { key: code + text, "data-code": code }, text,
                until ? ` (until ${localTime(until)})` : "",
                graph === undefined ? null
                    : [" ", h("a", { href: link(["graphs", graph]) }, `Graph ${graph}`)])))));
}

/** @param {{parts: string[]}} props */
function Next({ parts }) {
    /** @type {import("./resource.js").Resource<Api.Ticks>} */
    const { value } = useResource(address([...parts, "next"], { limit: 5 }), { every });
    if (!value || value.ticks.length === 0) return null;
    return h(Section, { title: "Next ticks", id: "next-section" },
        table({ id: "ticks", caption: "Next ticks", items: value.ticks, keyOf: ({ at }) => at,
            empty: "", columns: [
                { title: "Your time", cell: ({ at }) => h(Time, { at }) },
                { title: "Time of the trigger", cell: ({ local }) => (
                    h("time", { datetime: local, title: local }, zonedTime(local))) },
            ] }));
}

/** @type {Page.Column<Api.Firing>[]} */
const firingColumns = [
    { title: "Firing", isNumber: true, cell: ({ number }) => String(number) },
    { title: "Status", cell: (firing) => h(FiringState, { firing }) },
    { title: "Occurred", cell: ({ occurredAt }) => h(Time, { at: occurredAt }) },
    { title: "Count", isNumber: true, cell: ({ count }) => String(count) },
    { title: "Identity", isWide: true, cell: (firing) => h(Identity, { firing }) },
    { title: "Reason", isWide: true, cell: ({ reason }) => reason },
];

/** @param {{parts: string[]}} props */
function History({ parts }) {
    /** @type {import("./resource.js").Resource<Api.Firings>} */
    const { value, error } = useResource(address([...parts, "history"], { limit: 50 }), { every });
    return h(Section, { title: "History", id: "history-section" }, value
        ? table({ id: "history", caption: "History", columns: firingColumns,
            items: value.firings, keyOf: ({ number }) => number, empty: "It has not fired yet." })
        : h(Missing, { error }));
}
