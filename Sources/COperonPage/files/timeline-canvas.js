// The timeline on a canvas: it draws thousands of bars, and finds the one under the pointer.

import { axisHeight, drawTimeline, layoutOf } from "./timeline-drawing.js";
import { bounded, zoomed } from "./timeline-scale.js";

/** Pixels of a drag that a click may have. */
const slack = 4;

/** @typedef {import("./timeline-drawing.js").Place} Place */

/**
 * @typedef {object} Reports what the canvas tells
 * @property {(span: import("./timeline-scale.js").Span) => void} onSpan the reader has moved
 * @property {(place: Place | undefined, x: number, y: number) => void} onPoint a bar is pointed
 *     at, or chosen by a key
 * @property {(place: Place | undefined) => void} onChange there is news of the chosen bar
 * @property {(place: Place) => void} onOpen
 * @property {(layout: import("./timeline-drawing.js").Layout) => void} onLayout the rows are
 *     drawn with this layout
 */

/** Draws a timeline, and reports what the reader does. */
export class TimelineCanvas {
    /**
     * @param {HTMLCanvasElement} canvas
     * @param {HTMLElement} scroller what scrolls the rows
     * @param {Reports} reports
     */
    constructor(canvas, scroller, reports) {
        this.canvas = canvas;
        this.scroller = scroller;
        this.reports = reports;
        /** @type {Api.Timeline | undefined} */
        this.timeline = undefined;
        this.span = { from: 0, to: 1 };
        /** @type {Place | undefined} */
        this.chosen = undefined;
        /** @type {Map<number, number>} */
        this.pointers = new Map();
        this.moved = 0;
        this.frame = 0;
        this.stop = new AbortController();
        this.resizing = new ResizeObserver(() => this.draw());
        this.listen();
    }

    listen() {
        const { canvas, scroller } = this;
        const { signal } = this.stop;
        canvas.addEventListener("wheel", (event) => this.wheel(event), { signal, passive: false });
        canvas.addEventListener("pointerdown", (event) => this.down(event), { signal });
        canvas.addEventListener("pointermove", (event) => this.move(event), { signal });
        canvas.addEventListener("pointerup", (event) => this.up(event), { signal });
        canvas.addEventListener("pointercancel", (event) => this.up(event), { signal });
        canvas.addEventListener("pointerleave", () => this.point(undefined, 0, 0), { signal });
        canvas.addEventListener("keydown", (event) => this.key(event), { signal });
        scroller.addEventListener("scroll", () => this.draw(), { signal });
        matchMedia("(prefers-color-scheme: dark)")
            .addEventListener("change", () => this.draw(), { signal });
        this.resizing.observe(scroller);
    }

    /** Takes away all listeners. */
    end() {
        this.stop.abort();
        this.resizing.disconnect();
        cancelAnimationFrame(this.frame);
    }

    /**
     * @param {Api.Timeline} timeline
     * @param {import("./timeline-scale.js").Span} span
     */
    show(timeline, span) {
        const before = this.timeline;
        this.timeline = timeline;
        this.span = span;
        if (this.chosen && before && before !== timeline) {
            this.chosen = sameBar(before, this.chosen, timeline);
            // What is said of the bar may have changed, or the bar is no longer there.
            this.reports.onChange(this.chosen);
        }
        this.draw();
    }

    get layout() {
        return layoutOf(this.canvas.clientWidth);
    }

    get plotWidth() {
        return Math.max(this.canvas.clientWidth - this.layout.gutter - 8, 1);
    }

    /** @param {number} seconds */
    xOf(seconds) {
        const { from, to } = this.span;
        return this.layout.gutter + (seconds - from) / (to - from) * this.plotWidth;
    }

    /** @param {number} x */
    secondsAt(x) {
        const { from, to } = this.span;
        return from + (x - this.layout.gutter) / this.plotWidth * (to - from);
    }

    /** @param {number} row */
    yOf(row) {
        return axisHeight + row * this.layout.rowHeight - this.scroller.scrollTop;
    }

    draw() {
        if (this.frame) return;
        this.frame = requestAnimationFrame(() => {
            this.frame = 0;
            this.drawNow();
        });
    }

    drawNow() {
        const { canvas, timeline, span, chosen, layout } = this;
        const context = canvas.getContext("2d");
        const { clientWidth: width, clientHeight: height } = canvas;
        if (!context || !timeline || width === 0) return;
        // Not in the observer of the size: what this changes may change the size again.
        this.reports.onLayout(layout);
        const ratio = window.devicePixelRatio || 1;
        const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
        // Setting a size empties the canvas and takes new memory, even if it is the same size.
        if (canvas.width !== wide || canvas.height !== high) {
            [canvas.width, canvas.height] = [wide, high];
        }
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        const style = getComputedStyle(canvas);
        drawTimeline({
            context, timeline, span, chosen, width, height, layout,
            top: this.scroller.scrollTop,
            color: (name) => style.getPropertyValue(name).trim(),
        });
    }

    // What the reader does

    /** @param {Place} place */
    barAt({ row, bar }) {
        return this.timeline?.rows[row]?.bars[bar];
    }

    /**
     * The bar under a point, or near it. The gap in which it was waiting belongs to it.
     * @param {number} x
     * @param {number} y
     * @returns {Place | undefined}
     */
    find(x, y) {
        const { gutter, rowHeight } = this.layout;
        const row = Math.floor((y - axisHeight + this.scroller.scrollTop) / rowHeight);
        const bars = this.timeline?.rows[row]?.bars;
        if (!bars || y < axisHeight || x < gutter) return undefined;
        let [best, nearest] = [-1, 4];
        bars.forEach((bar, number) => {
            const distance = Math.max(
                this.xOf(bar.waitedFrom ?? bar.from) - x, x - this.xOf(bar.to), 0);
            if (distance < nearest) [best, nearest] = [number, distance];
        });
        return best < 0 ? undefined : { row, bar: best };
    }

    /**
     * @param {Place | undefined} place
     * @param {number} x
     * @param {number} y
     */
    point(place, x, y) {
        const { chosen } = this;
        if (place?.row === chosen?.row && place?.bar === chosen?.bar) return;
        this.chosen = place;
        this.canvas.style.cursor = place ? "pointer" : "";
        this.reports.onPoint(place, x, y);
        this.draw();
    }

    /** @param {import("./timeline-scale.js").Span} span */
    go(span) {
        this.span = bounded(span, this.timeline?.length ?? 1);
        this.reports.onSpan(this.span);
        this.draw();
    }

    /**
     * @param {number} factor above 1: a longer span
     * @param {number} [moment] that stays where it is
     */
    zoom(factor, moment = this.middle) {
        this.go(zoomed(this.span, factor, moment, this.timeline?.length ?? 1));
    }

    /** The moment around which keys and buttons zoom: that of the chosen bar, or the middle. */
    get middle() {
        const { from, to } = this.span;
        const bar = this.chosen && this.barAt(this.chosen);
        const middle = bar && (Math.max(bar.from, from) + Math.min(bar.to, to)) / 2;
        return middle !== undefined && middle > from && middle < to ? middle : (from + to) / 2;
    }

    /** @param {number} share of the span that is seen */
    pan(share) {
        const { from, to } = this.span;
        const seconds = (to - from) * share;
        const least = Math.max(-from, seconds);
        const most = Math.max(Math.min(least, (this.timeline?.length ?? 1) - to), -from);
        this.go({ from: from + most, to: to + most });
    }

    showAll() {
        this.go({ from: 0, to: Infinity });
    }

    /** @param {WheelEvent} event */
    wheel(event) {
        const canScroll = this.scroller.scrollHeight > this.scroller.clientHeight + 1;
        if (event.deltaX !== 0 && Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            event.preventDefault();
            this.pan(event.deltaX / this.plotWidth);
        } else if (event.ctrlKey || event.metaKey || !canScroll) {
            event.preventDefault();
            const { left } = this.canvas.getBoundingClientRect();
            const change = Math.min(Math.max(event.deltaY, -300), 300);
            this.zoom(Math.exp(change / 300), this.secondsAt(event.clientX - left));
        }
    }

    /** @param {PointerEvent} event */
    down(event) {
        if (event.pointerType === "mouse" && event.button !== 0) return;
        if (this.pointers.size === 0) this.moved = 0;
        this.pointers.set(event.pointerId, event.clientX);
        this.canvas.setPointerCapture(event.pointerId);
    }

    /** @param {PointerEvent} event */
    move(event) {
        const { left, top } = this.canvas.getBoundingClientRect();
        const before = this.pointers.get(event.pointerId);
        if (before === undefined) {
            const [x, y] = [event.clientX - left, event.clientY - top];
            this.point(this.find(x, y), x, y);
            return;
        }
        this.moved += Math.abs(event.clientX - before);
        this.pointers.set(event.pointerId, event.clientX);
        if (this.moved <= slack) return;
        const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
        if (others.length === 0) {
            this.pan((before - event.clientX) / this.plotWidth);
        } else {
            const other = others[0][1];
            const [was, is] = [Math.abs(before - other), Math.abs(event.clientX - other)];
            const middle = this.secondsAt((event.clientX + other) / 2 - left);
            if (was > 4 && is > 4) this.zoom(was / is, middle);
        }
    }

    /** @param {PointerEvent} event */
    up(event) {
        const isClick = this.pointers.delete(event.pointerId) && this.moved <= slack
            && event.type === "pointerup";
        if (!isClick) return;
        const { left, top } = this.canvas.getBoundingClientRect();
        const place = this.find(event.clientX - left, event.clientY - top);
        if (place) this.open(place);
    }

    /** @param {Place} place */
    open(place) {
        const bar = this.barAt(place);
        // What stands for several attempts is shown closer.
        if (bar && bar.count > 1) this.go({ from: bar.from, to: bar.to });
        else if (bar) this.reports.onOpen(place);
    }

    /** @param {KeyboardEvent} event */
    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        /** @type {Record<string, () => void>} */
        const keys = {
            "+": () => this.zoom(1 / 1.5), "=": () => this.zoom(1 / 1.5),
            "-": () => this.zoom(1.5), 0: () => this.showAll(),
            ArrowLeft: () => this.pan(-0.15), ArrowRight: () => this.pan(0.15),
            ArrowUp: () => this.choose(-1), ArrowDown: () => this.choose(1),
            Enter: () => {
                if (this.chosen) this.open(this.chosen);
            },
        };
        const act = keys[event.key];
        if (!act) return;
        event.preventDefault();
        act();
    }

    /**
     * Chooses the next bar, or the one before, row by row.
     * @param {1 | -1} step
     */
    choose(step) {
        const rows = this.timeline?.rows ?? [];
        let { row, bar } = this.chosen ?? { row: step > 0 ? 0 : rows.length - 1, bar: -1 };
        bar = this.chosen ? bar + step : step > 0 ? 0 : (rows[row]?.bars.length ?? 0) - 1;
        while (rows[row] && (bar < 0 || bar >= rows[row].bars.length)) {
            row += step;
            bar = step > 0 ? 0 : (rows[row]?.bars.length ?? 0) - 1;
        }
        const found = rows[row]?.bars[bar];
        if (!found) return;
        this.bringIntoView(row, found);
        const { gutter, rowHeight } = this.layout;
        const x = Math.max(this.xOf(found.from), gutter);
        this.point({ row, bar }, x, this.yOf(row) + rowHeight);
    }

    /**
     * @param {number} row
     * @param {Api.TimelineBar} bar
     */
    bringIntoView(row, bar) {
        const { from, to } = this.span;
        if (bar.to < from || bar.from > to) {
            const start = bar.from - (to - from) / 4;
            this.go({ from: start, to: start + to - from });
        }
        const { scroller } = this;
        const y = this.yOf(row);
        if (y < axisHeight) scroller.scrollTop += y - axisHeight;
        const below = y + this.layout.rowHeight - scroller.clientHeight;
        if (below > 0) scroller.scrollTop += below;
    }
}

/**
 * The place of a bar in a newer timeline.
 * @param {Api.Timeline} before
 * @param {Place} place in the one before
 * @param {Api.Timeline} after
 * @returns {Place | undefined}
 */
function sameBar(before, place, after) {
    const { worker, slot, bars } = before.rows[place.row];
    const old = bars[place.bar];
    const row = after.rows.findIndex((one) => one.worker === worker && one.slot === slot);
    const bar = after.rows[row]?.bars.findIndex((one) => one.index === old.index
        && one.attempt === old.attempt && one.from === old.from) ?? -1;
    return bar < 0 ? undefined : { row, bar };
}
