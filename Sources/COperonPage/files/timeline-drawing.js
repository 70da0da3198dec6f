// How the timeline is drawn on its canvas.

import { shapes } from "./ui.js";
import { ticks } from "./timeline-scale.js";

/** Pixels: the height of the axis, and of a bar. */
export const axisHeight = 26;
/** Pixels below the last row, for the mark of the critical path and the ring of the focus. */
const edge = 4;
const barHeight = 14;

/** @typedef {{row: number, bar: number}} Place of a bar in the timeline */

/**
 * @typedef {object} Layout Where the parts of a row are, in pixels
 * @property {boolean} isNarrow the name of a row is above its bars, not beside them
 * @property {number} gutter from the left edge to the bars
 * @property {number} rowHeight
 * @property {number} barTop from the top of a row to its bars
 * @property {number} nameMiddle from the top of a row to the middle of its name
 */

/** @type {Layout} */
const wide = { isNarrow: false, gutter: 150, rowHeight: 22, barTop: 4, nameMiddle: 11 };
/** @type {Layout} */
const narrow = { isNarrow: true, gutter: 6, rowHeight: 40, barTop: 22, nameMiddle: 11 };

/**
 * The layout for a width in pixels: on a narrow screen, a column would cut most names.
 * @param {number} width
 */
export function layoutOf(width) {
    return width < 500 ? narrow : wide;
}

/**
 * @typedef {object} Drawing
 * @property {CanvasRenderingContext2D} context
 * @property {Api.Timeline} timeline
 * @property {import("./timeline-scale.js").Span} span
 * @property {Place} [chosen]
 * @property {number} width
 * @property {number} height
 * @property {Layout} layout
 * @property {number} top pixels that are scrolled away
 * @property {(name: string) => string} color the value of a variable of page.css
 */

/**
 * The pixel of a moment.
 * @param {{span: import("./timeline-scale.js").Span, width: number, layout: Layout}} drawing
 * @param {number} seconds
 */
export function xOf({ span: { from, to }, width, layout: { gutter } }, seconds) {
    return gutter + (seconds - from) / (to - from) * Math.max(width - gutter - 8, 1);
}

/** The colour of each state: a variable of page.css. */
const colors = {
    succeeded: "--good", failed: "--bad", cancelled: "--odd", lost: "--bad", executing: "--run",
    returned: "--soft",
};

/** @type {Record<string, Path2D>} */
const signs = {};

/** @param {Drawing} drawing */
export function drawTimeline(drawing) {
    const { context, width, height, timeline, top, layout: { gutter, rowHeight } } = drawing;
    context.clearRect(0, 0, width, height);
    context.font = "12px ui-sans-serif, system-ui, sans-serif";
    context.textBaseline = "middle";
    const first = Math.max(0, Math.floor(top / rowHeight));
    const last = Math.min(timeline.rows.length, first + Math.ceil(height / rowHeight) + 1);
    for (let row = first; row < last; row += 1) drawStripe(drawing, row);
    const marks = ticks(drawing.span, width - gutter - 8);
    drawLines(drawing, marks);
    context.save();
    context.beginPath();
    context.rect(gutter, 0, width - gutter, height);
    context.clip();
    for (let row = first; row < last; row += 1) drawBars(drawing, row);
    context.restore();
    // After the lines of the axis, which cross the names on a narrow screen.
    for (let row = first; row < last; row += 1) drawName(drawing, row);
    drawChosen(drawing);
    drawAxis(drawing, marks);
}

/**
 * @param {Drawing} drawing
 * @param {number} row
 */
function yOf({ top, layout: { rowHeight } }, row) {
    return axisHeight + row * rowHeight - top;
}

/**
 * @param {Drawing} drawing
 * @param {number} row
 */
function drawStripe(drawing, row) {
    if (row % 2 !== 0) return;
    const { context, color, width, layout: { rowHeight } } = drawing;
    context.fillStyle = color("--fold");
    context.fillRect(0, yOf(drawing, row), width, rowHeight);
}

/**
 * The name of a row: in the gutter, or above the bars.
 * @param {Drawing} drawing
 * @param {number} row
 */
function drawName(drawing, row) {
    const { context, color, width, timeline, layout: { isNarrow, gutter, nameMiddle } } = drawing;
    const { worker, slot } = timeline.rows[row];
    const number = worker === "" ? "" : `#${slot}`;
    const numberWidth = context.measureText(number).width;
    const end = (isNarrow ? width : gutter) - 8 - numberWidth;
    const name = shortened(context, worker === "" ? "external" : worker, end - 10);
    const y = yOf(drawing, row) + nameMiddle;
    context.fillStyle = color("--ink");
    context.fillText(name, 6, y);
    context.fillText(number, isNarrow ? 10 + context.measureText(name).width : end, y);
}

/**
 * A name that fits. It is cut in the middle, because names of workers often differ at their end.
 * @param {CanvasRenderingContext2D} context
 * @param {string} name
 * @param {number} width
 */
function shortened(context, name, width) {
    const letters = [...name];
    let [text, left] = [name, letters.length];
    let length = context.measureText(text).width;
    while (length > width && left > 2) {
        left = Math.max(2, Math.min(left - 1, Math.floor(left * width / length)));
        const start = Math.ceil(left / 2);
        text = `${letters.slice(0, start).join("")}…${letters.slice(start - left).join("")}`;
        length = context.measureText(text).width;
    }
    return text;
}

/**
 * @param {Drawing} drawing
 * @param {number} row
 */
function drawBars(drawing, row) {
    const { context, color, span, width: whole, timeline, layout: { gutter, barTop } } = drawing;
    const top = yOf(drawing, row) + barTop;
    for (const bar of timeline.rows[row].bars) {
        drawWait(drawing, bar, top);
        if (bar.to < span.from || bar.from > span.to) continue;
        const left = Math.max(xOf(drawing, bar.from), gutter - 2);
        const right = Math.min(xOf(drawing, bar.to), whole + 2);
        // A gap tells two bars apart; a short bar is still seen.
        const width = right - left > 4 ? right - left - 1 : Math.max(right - left, 1.5);
        // A failed bar is taller, so that its colour is not all that tells it apart.
        const extra = bar.state === "failed" || bar.state === "lost" ? 3 : 0;
        context.fillStyle = color(colors[bar.state]);
        context.fillRect(left, top - extra, width, barHeight + 2 * extra);
        if (bar.isCritical) {
            context.fillStyle = color("--critical");
            context.fillRect(left, top + barHeight + 1, width, 2.5);
        }
        if (width > 18) drawText(drawing, bar, left, top, width);
    }
}

/**
 * A line in the gap before a bar, for as long as the attempt was waiting.
 * @param {Drawing} drawing
 * @param {Api.TimelineBar} bar
 * @param {number} top
 */
function drawWait(drawing, { waitedFrom, from }, top) {
    const { context, color, span, width, layout: { gutter } } = drawing;
    if (waitedFrom === undefined || from < span.from || waitedFrom > span.to) return;
    const left = Math.max(xOf(drawing, waitedFrom), gutter - 2);
    const right = Math.min(xOf(drawing, from), width + 2);
    if (right - left < 1) return;
    context.fillStyle = color("--soft");
    context.fillRect(left, top + barHeight / 2 - 1, right - left, 2);
}

/**
 * The sign of a bar, and its name if there is room.
 * @param {Drawing} drawing
 * @param {Api.TimelineBar} bar
 * @param {number} left
 * @param {number} top
 * @param {number} width
 */
function drawText({ context, color }, bar, left, top, width) {
    const sign = signs[bar.state] ??= new Path2D(shapes[bar.state]);
    const scale = 0.85;
    context.save();
    context.beginPath();
    context.rect(left, top - 3, width - 2, barHeight + 6);
    context.clip();
    context.fillStyle = color("--paper");
    context.translate(left + 2, top);
    context.scale(scale, scale);
    context.fill(sign, "evenodd");
    context.scale(1 / scale, 1 / scale);
    const text = bar.count > 1 ? `${bar.count} attempts` : bar.name ?? "";
    if (width > 46) context.fillText(text.slice(0, 200), 15, barHeight / 2 + 0.5);
    context.restore();
}

/** @param {Drawing} drawing */
function drawChosen(drawing) {
    const { context, color, chosen, timeline, layout: { gutter, barTop } } = drawing;
    const bar = chosen && timeline.rows[chosen.row]?.bars[chosen.bar];
    if (!chosen || !bar) return;
    const left = Math.max(xOf(drawing, bar.from), gutter);
    const width = Math.max(xOf(drawing, bar.to) - left, 3);
    context.strokeStyle = color("--ink");
    context.lineWidth = 2;
    context.strokeRect(left - 2, yOf(drawing, chosen.row) + barTop - 3, width + 4, barHeight + 6);
}

/**
 * The lines below the labels of the axis.
 * @param {Drawing} drawing
 * @param {{at: number}[]} marks
 */
function drawLines(drawing, marks) {
    const { context, color, height } = drawing;
    context.strokeStyle = color("--edge");
    context.lineWidth = 1;
    context.beginPath();
    for (const { at } of marks) {
        const x = Math.round(xOf(drawing, at)) + 0.5;
        context.moveTo(x, 0);
        context.lineTo(x, height);
    }
    context.stroke();
}

/**
 * The axis, over the rows that are scrolled away.
 * @param {Drawing} drawing
 * @param {{at: number, text: string}[]} marks
 */
function drawAxis(drawing, marks) {
    const { context, color, width } = drawing;
    context.fillStyle = color("--paper");
    context.fillRect(0, 0, width, axisHeight);
    context.fillStyle = color("--soft");
    context.strokeStyle = color("--edge");
    context.lineWidth = 1;
    context.beginPath();
    for (const { at, text } of marks) {
        const x = Math.round(xOf(drawing, at)) + 0.5;
        context.moveTo(x, axisHeight - 6);
        context.lineTo(x, axisHeight);
        const wide = context.measureText(text).width;
        context.fillText(text, Math.max(2, Math.min(x - wide / 2, width - wide - 2)), 10);
    }
    context.moveTo(0, axisHeight - 0.5);
    context.lineTo(width, axisHeight - 0.5);
    context.stroke();
}

/**
 * The name of a row.
 * @param {{worker: string, slot: number}} row
 */
export function rowName({ worker, slot }) {
    return worker === "" ? "external" : `${worker} #${slot}`;
}

/**
 * The height of all rows, in pixels.
 * @param {number} rows
 * @param {Layout} layout
 */
export function heightOf(rows, { rowHeight }) {
    return axisHeight + rows * rowHeight + edge;
}
