// Components that several views share.

import {
    clusterNow, countsText, finished, localTime, percent, secondsBetween, short, states, total,
} from "./format.js";
import { operationLink } from "./routes.js";
import { h, useEffect, useLayoutEffect, useRef, useState } from "./preact.js";

/** @typedef {import("../preact").Child} Child */
/** @typedef {import("../preact").VNode} VNode */

/**
 * The shape of each state, in a square of 16: a state is never told by colour alone.
 * @type {Record<string, string>}
 */
export const shapes = {
    pending: "M8 3a5 5 0 1 0 0 10a5 5 0 1 0 0-10zM8 5a3 3 0 1 1 0 6a3 3 0 1 1 0-6z",
    ready: "M8 3a5 5 0 1 0 0 10a5 5 0 1 0 0-10zM8 5a3 3 0 0 1 0 6z",
    dispatched: "M4 3l9 5l-9 5zM6 6.3v3.4L9 8z",
    executing: "M4 3l9 5l-9 5z",
    running: "M4 3l9 5l-9 5z",
    succeeded: "M3 8.5l1.5-1.5l2.3 2.3L11.8 4l1.5 1.5L6.8 12.3z",
    finished: "M3 8.5l1.5-1.5l2.3 2.3L11.8 4l1.5 1.5L6.8 12.3z",
    failed: "M4.4 3L8 6.6L11.6 3L13 4.4L9.4 8L13 11.6L11.6 13L8 9.4L4.4 13L3 11.6L6.6 8L3 4.4z",
    cancelled: "M4 4h8v8H4z",
    skipped: "M2 4l5 4l-5 4zM8 4l5 4l-5 4z",
    suspended: "M4 3h3v10H4zM9 3h3v10H9z",
    returned: "M12 3v10L4 8z",
    lost: "M7 2h2v8H7zM7 12h2v2H7z",
};

/**
 * The sign of a state.
 * @param {{state: string}} props
 */
export function Sign({ state }) {
    const path = h("path", { d: shapes[state] ?? shapes.pending, "fill-rule": "evenodd" });
    return h("svg", { class: "sign", viewBox: "0 0 16 16", "aria-hidden": "true" }, path);
}

/** States that have a colour and a shape. */
const known = new Set(Object.keys(shapes));

/**
 * A state in words, with its sign and its colour.
 * @param {{state: string}} props
 */
export function State({ state }) {
    const name = known.has(state) ? state : "other";
    return h("span", { class: `state ${name}`, "data-state": state }, h(Sign, { state }), state);
}

/**
 * How far something is: a bar with a part for each state, and the share in words.
 * @param {{counts: Api.SomeCounts, label?: string}} props
 */
export function Progress({ counts, label = "Progress" }) {
    const all = total(counts);
    const share = percent(counts);
    const parts = states.filter((state) => state !== "pending" && counts[state]);
    return h("span", { class: "progress" },
        h("span", {
            class: "bar", role: "progressbar", "aria-label": label, "aria-valuenow": share,
            "aria-valuemin": 0, "aria-valuemax": 100, title: countsText(counts),
            "aria-valuetext": `${share} percent: ${countsText(counts)}`,
        }, parts.map((state) => h("span", {
            key: state, class: `part ${state}`,
            style: { width: `${(counts[state] ?? 0) * 100 / all}%` },
        }))),
        h("span", { class: "share" }, `${share} % · ${finished(counts)}/${all}`));
}

/**
 * A time in the reader's zone.
 * @param {{at: string}} props
 */
export function Time({ at }) {
    return h("time", { datetime: at, title: at }, localTime(at));
}

/** One clock for all durations that grow; it stands still while the tab is hidden. */
const beat = {
    /** @type {Set<() => void>} */
    listeners: new Set(),
    /** @type {ReturnType<typeof setInterval> | undefined} */
    timer: undefined,
};

/**
 * Draws the component again every second.
 * @param {boolean} isOn
 */
export function useSeconds(isOn) {
    const [, redraw] = useState(0);
    useEffect(() => {
        if (!isOn) return undefined;
        const listener = () => redraw((count) => count + 1);
        beat.listeners.add(listener);
        beat.timer ??= setInterval(() => {
            if (!document.hidden) for (const each of [...beat.listeners]) each();
        }, 1000);
        return () => {
            beat.listeners.delete(listener);
            if (beat.listeners.size > 0) return;
            clearInterval(beat.timer);
            beat.timer = undefined;
        };
    }, [isOn]);
}

/**
 * How long something took, or has taken so far.
 * @param {{from: string, to?: string}} props
 */
export function Duration({ from, to }) {
    useSeconds(to === undefined);
    return h("span", { class: "duration" }, short(secondsBetween(from, to)));
}

/**
 * How long ago something was.
 * @param {{at: string}} props
 */
export function Ago({ at }) {
    useSeconds(true);
    const seconds = (clusterNow() - Date.parse(at)) / 1000;
    return h("time", { datetime: at, title: at }, `${short(seconds)} ago`);
}

/**
 * A link to an operation.
 * @param {{operation: {graph: number | string, name: string, index: number}, isWhole?: boolean}}
 *     props `isWhole`: its graph is shown, too
 */
export function OperationLink({ operation, isWhole = false }) {
    const text = isWhole ? `${operation.graph}/${operation.name}` : operation.name;
    return h("a", { href: operationLink(operation), class: "name" }, h("bdi", null, text));
}

/**
 * A table that turns into cards on narrow screens. The roles are there for browsers that take
 * them away from tables that are laid out as something else. This is called, not given to `h`,
 * because only so TypeScript finds out what the items are.
 * @template T
 * @param {{
 *     id: string, caption: string, columns: Page.Column<T>[], items: T[],
 *     keyOf: (item: T) => string | number, empty: string, isBusy?: boolean,
 * }} props
 */
export function table({ id, caption, columns, items, keyOf, empty, isBusy = false }) {
    if (items.length === 0) return h("p", { class: "empty", "data-test": `${id}-empty` }, empty);
    const head = columns.map((column) => h("th", {
        key: column.title, scope: "col", role: "columnheader", class: classOf(column),
    }, column.title));
    const rows = items.map((item) => h("tr", { key: keyOf(item), role: "row" },
        columns.map((column) => h("td", {
            key: column.title, role: "cell", "data-label": column.title, class: classOf(column),
        }, h("div", null, column.cell(item))))));
    return h("table", { id, role: "table", "aria-label": caption, "aria-busy": String(isBusy) },
        h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)),
        h("tbody", { role: "rowgroup" }, rows));
}

/** @param {{isNumber?: boolean, isWide?: boolean}} column */
function classOf({ isNumber, isWide }) {
    return (isNumber ? "number" : "") + (isWide ? "wide" : "");
}

/**
 * Facts about one thing: names and values; a fact without a value is left out.
 * @param {{facts: [string, Child][], id?: string}} props
 */
export function Facts({ facts, id }) {
    const there = facts.filter(([, value]) => value !== undefined && value !== null
        && value !== false && value !== "");
    return h("dl", { class: "facts", id }, there.map(([name, value]) => (
        h("div", { key: name }, h("dt", null, name), h("dd", null, value)))));
}

/**
 * The heading of a view. The focus comes here when the view opens, so that a screen reader
 * begins with it.
 * @param {{title: string, children?: Child}} props
 */
export function Heading({ title, children }) {
    const element = useRef(/** @type {HTMLElement | null} */ (null));
    useLayoutEffect(() => {
        document.title = `${title} – Operon`;
    }, [title]);
    useEffect(() => {
        const active = document.activeElement;
        const isFree = active === null || active === document.body
            || !document.contains(active) || active.tagName === "A";
        if (isFree && !document.querySelector("dialog[open]")) {
            element.current?.focus({ preventScroll: true });
        }
    }, []);
    return h("div", { class: "heading" },
        h("h1", { tabindex: -1, ref: element }, h("bdi", null, title)), children);
}

/**
 * What stands where a value is not there yet, or cannot be had.
 * @param {{error?: Error}} props
 */
export function Missing({ error }) {
    if (error) return h("p", { class: "refused", role: "alert", "data-test": "problem" },
        h(Sign, { state: "lost" }), error.message);
    return h("p", { class: "empty", "data-test": "loading" }, "Loading…");
}

/**
 * A part of a view, with a heading.
 * @param {{title: string, id: string, children?: Child, aside?: Child}} props
 */
export function Section({ title, id, children, aside }) {
    return h("section", { id, "aria-labelledby": `${id}-title` },
        h("div", { class: "heading" }, h("h2", { id: `${id}-title` }, title), aside),
        children);
}

/**
 * Explains each state by its sign, its colour and its word.
 * @param {{counts: Api.SomeCounts, href?: (state: string) => string}} props
 */
export function Counts({ counts, href }) {
    return h("ul", { class: "counts", id: "counts" }, states.map((state) => {
        const content = [h(State, { state }), h("b", null, String(counts[state] ?? 0))];
        return h("li", { key: state, "data-test": `count-${state}` },
            href ? h("a", { href: href(state) }, content) : content);
    }));
}

/**
 * A sentence about who suspended something.
 * @param {Api.Suspension | undefined} suspension
 */
export function suspensionText(suspension) {
    const by = suspension?.by ? ` by ${suspension.by}` : "";
    const until = suspension?.until ? ` until ${localTime(suspension.until)}` : "";
    const reason = suspension?.reason ? `: ${suspension.reason}` : "";
    return `suspended${by}${until}${reason}`;
}
