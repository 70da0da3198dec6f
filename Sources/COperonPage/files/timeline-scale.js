// The time axis of the timeline: what is seen of it, and its labels.

import { clock } from "./format.js";

/** The shortest span that can be seen, in seconds. */
const shortest = 0.05;

/** Distances of labels, in seconds. */
const steps = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600,
    900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400,
];

/** @typedef {{from: number, to: number}} Span in seconds since the submission of the graph */

/**
 * A span with a certain length, or nearly, within the whole.
 * @param {Span} span
 * @param {number} length of the whole
 * @returns {Span}
 */
export function bounded({ from, to }, length) {
    const whole = Math.max(length, shortest);
    const width = Math.min(Math.max(to - from, shortest), whole);
    // It is kept around its middle when it is too short.
    const start = from + (to - from - width) / 2;
    const first = Math.min(Math.max(start, 0), whole - width);
    return { from: first, to: first + width };
}

/**
 * A span that is longer or shorter around a moment.
 * @param {Span} span
 * @param {number} factor above 1: longer
 * @param {number} moment
 * @param {number} length of the whole
 */
export function zoomed({ from, to }, factor, moment, length) {
    return bounded({
        from: moment - (moment - from) * factor, to: moment + (to - moment) * factor,
    }, length);
}

/**
 * The labels of the axis.
 * @param {Span} span
 * @param {number} width in pixels
 * @returns {{at: number, text: string}[]}
 */
export function ticks({ from, to }, width) {
    const least = (to - from) * 90 / Math.max(width, 1);
    let step = steps.find((one) => one >= least) ?? 86_400;
    while (step < least) step *= 2;
    const digits = step >= 1 ? 0 : Math.ceil(-Math.log10(step) - 1e-9);
    const list = [];
    for (let number = Math.ceil(from / step); number * step <= to; number += 1) {
        const at = number * step;
        list.push({ at, text: exactClock(at, digits) });
    }
    return list;
}

/**
 * A time with so many digits of its second.
 * @param {number} at
 * @param {number} digits
 */
function exactClock(at, digits) {
    // Whole seconds are those that have passed. With a fraction it is rounded first: what is nearly a
    // second is none with a fraction of 0.999….
    const rounded = digits > 0 ? Number(at.toFixed(digits)) : at;
    const rest = digits > 0 ? (rounded % 1).toFixed(digits).slice(1) : "";
    return clock(rounded + 1e-9) + rest;
}

/**
 * The begin and the end of a span, as exactly as its length needs.
 * @param {Span} span
 */
export function endsOf({ from, to }) {
    const length = to - from;
    const digits = length >= 10 ? 0 : length >= 1 ? 1 : 3;
    return { from: exactClock(from, digits), to: exactClock(to, digits) };
}
