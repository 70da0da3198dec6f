// How the picture of a graph is drawn: boxes, and arrows that share one path.

import { countsText, plural, states, total } from "./format.js";
import { link } from "./routes.js";
import { shapes } from "./ui.js";
import { h } from "./preact.js";

/** States from the one that a reader should see first to the least important. */
const weights = /** @type {const} */ ([
    "failed", "executing", "dispatched", "cancelled", "skipped", "ready", "pending", "succeeded",
]);

/**
 * The state that stands for all operations of a box.
 * @param {Api.SomeCounts} counts
 */
export function mainState(counts) {
    return weights.find((state) => counts[state]) ?? "pending";
}

/** @param {Api.PictureBox} box */
export function boxText(box) {
    const text = box.count === 1 ? mainState(box.states)
        : `${plural(box.count, "operation")}, ${countsText(box.states)}`;
    return `${box.title}: ${text}${box.isCritical ? ", on the critical path" : ""}`;
}

/**
 * Where a box leads: to its operation, or to the operations that it stands for.
 * @param {string} graph
 * @param {Api.PictureBox} box
 * @param {number} number
 */
export function boxLink(graph, box, number) {
    if (box.count === 1) {
        return link(["graphs", graph, "operations", `@${box.index ?? box.first}`]);
    }
    return link(["graphs", graph, "operations"], { box: number });
}

/** @type {CanvasRenderingContext2D | null} */
let ruler = null;

/**
 * A title, cut so that it fits.
 * @param {string} title
 * @param {number} width
 */
function fitted(title, width) {
    ruler ??= document.createElement("canvas").getContext("2d");
    if (!ruler) return title;
    ruler.font = "12px ui-sans-serif, system-ui, sans-serif";
    const long = ruler.measureText(title).width;
    if (long <= width) return title;
    return title.slice(0, Math.max(1, Math.floor(title.length * width / long) - 1)) + "…";
}

/**
 * A box with its sign and its title; a folded box has a bar of its states.
 * @param {Api.PictureBox} box
 * @param {string} graph
 * @param {{number: number, isFound: boolean, isHere: boolean}} how
 */
export function boxNode(box, graph, { number, isFound, isHere }) {
    const state = mainState(box.states);
    const { x, y, width, height } = box;
    const isFolded = box.count > 1;
    const title = fitted(isFolded ? `${box.title} ×${box.count}` : box.title, width - 26);
    const middle = y + (isFolded ? (height - 5) / 2 : height / 2);
    const classes = ["box", state, box.isCritical ? "critical" : "", isFound ? "found" : "",
        isHere ? "here" : ""];
    return h("a", {
        key: number, href: boxLink(graph, box, number), class: classes.filter(Boolean).join(" "),
        "data-box": number, "data-state": state, "aria-label": boxText(box), draggable: false,
    },
    h("title", null, boxText(box)),
    h("rect", { class: "frame", x, y, width, height, rx: 6 }),
    h("path", {
        class: "box-sign", d: shapes[state], "fill-rule": "evenodd",
        transform: `translate(${x + 5} ${middle - 7}) scale(0.875)`,
    }),
    h("text", { x: x + 21, y: middle + 4 }, title),
    isFolded ? statesBar(box) : null);
}

/** @param {Api.PictureBox} box */
function statesBar({ x, y, width, height, states: counts }) {
    const all = total(counts);
    const [left, whole] = [x + 6, width - 12];
    let before = 0;
    return states.filter((state) => counts[state]).map((state) => {
        const count = counts[state] ?? 0;
        const start = left + whole * before / all;
        before += count;
        return h("rect", {
            key: state, class: `part ${state}`, x: start, y: y + height - 8,
            width: whole * count / all, height: 4,
        });
    });
}

/** Arrows in one path: browsers pass over paths that are out of view, and draw short ones fast. */
const arrowsInPath = 40;

/**
 * The paths of all arrows of one kind: their lines, and their heads. Arrows that are near each
 * other share a path.
 * @param {Api.PictureArrow[]} arrows
 */
export function arrowPaths(arrows) {
    const sorted = [...arrows].sort(({ points: [x, y] }, { points: [otherX, otherY] }) => (
        x - otherX || y - otherY));
    const paths = [];
    for (let first = 0; first < sorted.length; first += arrowsInPath) {
        paths.push(arrowPath(sorted.slice(first, first + arrowsInPath)));
    }
    return paths;
}

/** @param {Api.PictureArrow[]} arrows */
function arrowPath(arrows) {
    const lines = [];
    const heads = [];
    for (const { points } of arrows) {
        let [x, y] = points;
        lines.push(`M${x} ${y}`);
        // Through a layer in a straight line, between layers in a curve.
        for (let place = 2; place + 1 < points.length; place += 2) {
            const [toX, toY] = [points[place], points[place + 1]];
            const middle = (x + toX) / 2;
            lines.push(place % 4 === 2
                ? `C${middle} ${y} ${middle} ${toY} ${toX} ${toY}` : `L${toX} ${toY}`);
            [x, y] = [toX, toY];
        }
        heads.push(`M${x} ${y}l-7 -3.5v7z`);
    }
    return { lines: lines.join(""), heads: heads.join("") };
}
