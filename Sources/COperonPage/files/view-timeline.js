// The timeline of a graph: what ran where, and when.

import { Button } from "./controls.js";
import { clock, plural, short } from "./format.js";
import { GraphFrame } from "./graph-frame.js";
import { useResource } from "./resource.js";
import { address, go, operationLink } from "./routes.js";
import { TimelineCanvas } from "./timeline-canvas.js";
import { heightOf, layoutOf, rowName } from "./timeline-drawing.js";
import { endsOf } from "./timeline-scale.js";
import { Missing, OperationLink, Section, State, table } from "./ui.js";
import { h, useEffect, useRef, useState } from "./preact.js";

/** @typedef {import("./timeline-scale.js").Span} Span */

/**
 * The bar that is pointed at, and where.
 * @typedef {{bar: Api.TimelineBar, row: Api.TimelineRow, x: number, y: number}} Pointed
 */

/** How many attempts the table has. */
const longest = 20;

/** @param {{route: Page.Route}} props */
export function TimelineView({ route }) {
    return h(GraphFrame, {
        route, children: (graph) => h(Timeline, { graph: route.graph ?? "", id: graph.id }),
    });
}

/** @param {{graph: string, id: number}} props */
function Timeline({ graph, id }) {
    // What is seen; `undefined`: all of it, also while it grows.
    const [span, setSpan] = useState(/** @type {Span | undefined} */ (undefined));
    const last = useRef(/** @type {Api.Timeline | undefined} */ (undefined));
    const asked = useAsked(span, last.current?.length ?? 0);
    /** @type {import("./resource.js").Resource<Api.Timeline>} */
    const { value: newest, error } = useResource(address(["graphs", graph, "timeline"], {
        from: asked?.from.toFixed(3), to: asked?.to.toFixed(3),
    }));
    // While another part is fetched, the one before is shown.
    last.current = newest ?? last.current;
    const timeline = last.current;
    if (!timeline) return h(Missing, { error });
    if (timeline.rows.length === 0 && !span) {
        return h("p", { class: "empty", "data-test": "timeline-empty" },
            "No operation has started yet.");
    }
    const seen = span ?? { from: 0, to: Math.max(timeline.length, 0.05) };
    const change = (/** @type {Span} */ next) => {
        const isAll = next.from <= 0 && next.to >= timeline.length;
        setSpan(isAll ? undefined : next);
    };
    return h("div", { id: "timeline-place" },
        error ? h(Missing, { error }) : null,
        h(Plot, { timeline, seen, onSpan: change, id }),
        timeline.left > 0 ? h("p", { class: "soft" }, `${plural(timeline.left, "row")} left out.`)
            : null,
        h(Legend, null),
        h(Longest, { timeline, seen, id }));
}

/**
 * The part to ask for, when the reader has stopped moving: with as much on both sides as is seen,
 * so that a small move shows something at once.
 * @param {Span | undefined} span
 * @param {number} length of the whole
 */
function useAsked(span, length) {
    const [asked, setAsked] = useState(span);
    useEffect(() => {
        const timer = setTimeout(() => {
            const side = span ? (span.to - span.from) / 2 : 0;
            setAsked(span && {
                from: Math.max(0, span.from - side), to: Math.min(length, span.to + side),
            });
        }, 250);
        return () => clearTimeout(timer);
    }, [span?.from, span?.to]);
    return asked;
}

/**
 * @param {{timeline: Api.Timeline, seen: Span, id: number, onSpan: (span: Span) => void}} props
 */
function Plot({ timeline, seen, id, onSpan }) {
    const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
    const scroller = useRef(/** @type {HTMLDivElement | null} */ (null));
    const plot = useRef(/** @type {TimelineCanvas | null} */ (null));
    const [hint, setHint] = useState(/** @type {Pointed | undefined} */ (undefined));
    const [layout, setLayout] = useState(layoutOf(window.innerWidth));
    const reports = useRef({ onSpan });
    reports.current.onSpan = onSpan;
    useEffect(() => {
        const own = new TimelineCanvas(
            /** @type {HTMLCanvasElement} */ (canvas.current),
            /** @type {HTMLDivElement} */ (scroller.current), {
                onSpan: (span) => reports.current.onSpan(span),
                onPoint: (place, x, y) => {
                    const bar = place && own.barAt(place);
                    const row = place && own.timeline?.rows[place.row];
                    setHint(bar && row ? { bar, row, x, y } : undefined);
                },
                onChange: (place) => {
                    const bar = place && own.barAt(place);
                    setHint((last) => bar && last && { ...last, bar });
                },
                onOpen: (place) => {
                    const bar = own.barAt(place);
                    if (bar) go(operationLink(operationOf(id, bar)));
                },
                onLayout: setLayout,
            });
        plot.current = own;
        return () => own.end();
    }, [id]);
    useEffect(() => plot.current?.show(timeline, seen), [timeline, seen.from, seen.to]);
    const height = heightOf(timeline.rows.length, layout);
    const ends = endsOf(seen);
    return h("div", null,
        h("div", { class: "tools-line" },
            h("span", { class: "soft", id: "timeline-span" },
                `From ${ends.from} to ${ends.to} after the submission: `
                + `${short(seen.to - seen.from)} of ${short(timeline.length)}`),
            h(ZoomButtons, { plot })),
        h("div", { class: "timeline-box" },
            h("div", { class: "timeline", ref: scroller },
                h("canvas", {
                    id: "timeline", ref: canvas, tabindex: 0, role: "application",
                    "aria-label": "Timeline", "aria-describedby": "timeline-help timeline-hint",
                    style: { height: `min(60vh, ${height}px)` },
                    onBlur: () => plot.current?.point(undefined, 0, 0),
                }),
                h("div", { class: "timeline-rest",
                    style: { height: `calc(${height}px - min(60vh, ${height}px))` } })),
            hint ? h(Hint, {
                ...hint, start: timeline.startedAt, isNarrow: layout.isNarrow,
            }) : null),
        h("p", { class: "soft", id: "timeline-help" },
            "Drag to move, Ctrl and the wheel to zoom. Keys: + − 0 zoom, ← → move, "
            + "↑ ↓ choose an attempt, Enter opens it. The table below has the longest attempts."),
        h("p", { class: "only-read", id: "timeline-hint", "aria-live": "polite" },
            hint ? barText(hint.bar, hint.row) : ""));
}

/** @param {{plot: {current: TimelineCanvas | null}}} props */
function ZoomButtons({ plot }) {
    return h("div", { class: "actions", role: "group", "aria-label": "Zoom" },
        h(Button, { name: "earlier", label: "Earlier",
            onClick: () => plot.current?.pan(-0.5) }, "◂"),
        h(Button, { name: "later", label: "Later", onClick: () => plot.current?.pan(0.5) }, "▸"),
        h(Button, { name: "zoom-in", label: "Zoom in",
            onClick: () => plot.current?.zoom(1 / 1.5) }, "+"),
        h(Button, { name: "zoom-out", label: "Zoom out",
            onClick: () => plot.current?.zoom(1.5) }, "−"),
        h(Button, { name: "zoom-all", onClick: () => plot.current?.showAll() }, "Show all"));
}

/**
 * @param {number} graph
 * @param {Api.TimelineBar} bar
 */
function operationOf(graph, { name, index }) {
    return { graph, name: name ?? "", index: index ?? -1 };
}

/**
 * A bar in words.
 * @param {Api.TimelineBar} bar
 * @param {Api.TimelineRow} row
 */
function barText(bar, row) {
    const what = bar.count > 1 ? `${bar.count} attempts, the worst ${bar.state}`
        : `${bar.name}, attempt ${bar.attempt}, ${bar.state}`;
    return `${what}, ${rowName(row)}, from ${clock(bar.from)} to ${clock(bar.to)}, `
        + short(bar.to - bar.from) + waitText(bar, ", after ")
        + (bar.isCritical ? ", on the critical path" : "");
}

/**
 * The gap before an attempt in words; empty: there is none, or it is too short to be seen.
 * @param {Api.TimelineBar} bar
 * @param {string} before the text
 */
function waitText({ waitedFrom, from }, before) {
    return waitedFrom === undefined ? ""
        : `${before}a gap of ${short(from - waitedFrom)} in which it was waiting`;
}

/**
 * What is shown beside the pointer.
 * @param {Pointed & {start: string, isNarrow: boolean}} props
 */
function Hint({ bar, row, x, y, start, isNarrow }) {
    const moment = (/** @type {number} */ seconds) => {
        const time = new Date(Date.parse(start) + seconds * 1000);
        return `${clock(seconds)} (${time.toTimeString().slice(0, 8)})`;
    };
    return h("div", {
        class: "timeline-hint", id: "timeline-tip", "aria-hidden": "true",
        // On the side where there is room. A narrow screen may have room on neither side.
        style: x > 420 ? { right: `calc(100% - ${x - 8}px)`, top: `${y + 14}px` }
            : { left: isNarrow ? "0" : `${x + 8}px`, top: `${y + 14}px` },
    },
    h("b", null, h("bdi", null, bar.count > 1 ? plural(bar.count, "attempt") : bar.name)),
    bar.count > 1
        ? h("div", null, "the worst ", h(State, { state: bar.state }), "; click to zoom in")
        : h("div", null, `attempt ${bar.attempt} `, h(State, { state: bar.state })),
    h("div", null, h("bdi", null, rowName(row))),
    h("div", null, `from ${moment(bar.from)}`),
    h("div", null, `to ${moment(bar.to)}`),
    h("div", null, `took ${short(bar.to - bar.from)}`,
        bar.isCritical ? ", on the critical path" : ""),
    h("div", null, waitText(bar, "after ")));
}

function Legend() {
    const states = ["succeeded", "failed", "cancelled", "lost", "returned", "executing"];
    return h("ul", { class: "legend", "aria-label": "Legend" },
        states.map((state) => h("li", { key: state }, h(State, { state }))),
        h("li", null, h("svg", { class: "line", viewBox: "0 0 28 10", "aria-hidden": "true" },
            h("path", { class: "critical-arrows", d: "M0 5H28" })),
        "below a bar: critical path"),
        h("li", null, h("svg", { class: "line", viewBox: "0 0 28 10", "aria-hidden": "true" },
            h("path", { class: "wait-line", d: "M0 5H28" })),
        "before a bar: a gap in which it was waiting"));
}

/**
 * The same for those who do not see the canvas: the longest attempts of the part that is shown.
 * @param {{timeline: Api.Timeline, seen: Span, id: number}} props
 */
function Longest({ timeline, seen, id }) {
    const items = timeline.rows.flatMap((row) => row.bars
        .filter((bar) => bar.count === 1 && bar.to >= seen.from && bar.from <= seen.to)
        .map((bar) => ({ bar, row })))
        .sort((one, other) => other.bar.to - other.bar.from - one.bar.to + one.bar.from)
        .slice(0, longest);
    return h(Section, { title: "Longest attempts", id: "longest-section" },
        table({
            id: "longest", caption: "Longest attempts", items,
            keyOf: ({ bar }) => `${bar.index} ${bar.attempt}`,
            empty: "No attempt can be told apart at this zoom.",
            columns: [
                { title: "Operation", isWide: true, cell: ({ bar }) => (
                    h(OperationLink, { operation: operationOf(id, bar) })) },
                { title: "Attempt", isNumber: true, cell: ({ bar }) => String(bar.attempt) },
                { title: "State", cell: ({ bar }) => h(State, { state: bar.state }) },
                { title: "Worker and slot", cell: ({ row }) => h("bdi", null, rowName(row)) },
                { title: "From", isNumber: true, cell: ({ bar }) => clock(bar.from) },
                { title: "To", isNumber: true, cell: ({ bar }) => clock(bar.to) },
                { title: "Took", isNumber: true, cell: ({ bar }) => short(bar.to - bar.from) },
            ],
        }));
}
