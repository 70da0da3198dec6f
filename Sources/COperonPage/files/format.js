// How numbers, durations and times are written: as the commands of operon write them.

/** How far the coordinator's clock is ahead of the reader's, in milliseconds. */
let clockOffset = 0;

/**
 * Notes what the coordinator's clock shows, so that durations up to now are right on machines
 * whose clocks differ.
 * @param {string} now RFC 3339
 */
export function setClock(now) {
    const time = Date.parse(now);
    if (!Number.isNaN(time)) clockOffset = time - Date.now();
}

/** The coordinator's time, in milliseconds since 1970. */
export function clusterNow() {
    return Date.now() + clockOffset;
}

/** @param {number} number */
function padded(number) {
    return String(number).padStart(2, "0");
}

/**
 * A clock: `0:07`, `12:03`, `1:02:03`, `3d 04:05:06`.
 * @param {number} duration in seconds
 */
export function clock(duration) {
    const total = Math.max(0, Math.floor(duration));
    const second = padded(total % 60);
    const minute = Math.floor(total / 60) % 60;
    const hour = Math.floor(total / 3600) % 24;
    const days = Math.floor(total / 86400);
    if (days > 0) return `${days}d ${padded(hour)}:${padded(minute)}:${second}`;
    if (hour > 0) return `${hour}:${padded(minute)}:${second}`;
    return `${minute}:${second}`;
}

/**
 * A measured duration: `0.9ms`, `12ms`, `1.2s`, and a clock from a minute on.
 * @param {number} duration in seconds
 */
export function short(duration) {
    const seconds = Math.max(0, duration);
    if (seconds < 0.01) return `${(seconds * 1000).toFixed(1)}ms`;
    if (seconds < 0.9995) return `${Math.round(seconds * 1000)}ms`;
    if (seconds < 60) return `${seconds.toFixed(1)}s`;
    return clock(seconds);
}

/**
 * The seconds from one time to another, or to now.
 * @param {string} from RFC 3339
 * @param {string} [to] RFC 3339
 */
export function secondsBetween(from, to) {
    return ((to ? Date.parse(to) : clusterNow()) - Date.parse(from)) / 1000;
}

/**
 * A time in the reader's zone: `17:03:25` today, `2026-11-26 17:03:25` on other days.
 * @param {string} text RFC 3339
 */
export function localTime(text) {
    const time = new Date(text);
    if (Number.isNaN(time.getTime())) return text;
    const ofDay = [time.getHours(), time.getMinutes(), time.getSeconds()].map(padded).join(":");
    if (time.toDateString() === new Date().toDateString()) return ofDay;
    const month = padded(time.getMonth() + 1);
    return `${time.getFullYear()}-${month}-${padded(time.getDate())} ${ofDay}`;
}

/**
 * A time in the zone in which it is written: `2026-11-30 03:00:00 +01:00`.
 * @param {string} text RFC 3339
 */
export function zonedTime(text) {
    const parts = /^(\d+-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?([+-]\d\d:\d\d)$/.exec(text);
    return parts ? parts.slice(1).join(" ") : text;
}

/**
 * `1 operation`, `2 operations`.
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function plural(count, one, many) {
    return count === 1 ? `1 ${one}` : `${count} ${many ?? one + "s"}`;
}

/**
 * An amount of a resource: bytes for memory, a number for all others.
 * @param {number} amount
 * @param {string} name the resource
 */
export function amount(amount, name) {
    if (name !== "memory") return String(Math.round(amount * 1000) / 1000);
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let [value, unit] = [amount, 0];
    while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
    return `${Math.round(value * 10) / 10}${units[unit]}`;
}

/**
 * A pace: `0.4/s`, `12/s`.
 * @param {number} perSecond
 */
export function pace(perSecond) {
    return `${perSecond < 10 ? Math.round(perSecond * 10) / 10 : Math.round(perSecond)}/s`;
}

/**
 * A short time: `0.4ms`, `12ms`, `1.3s`.
 * @param {number} [seconds] Missing: nothing was measured.
 */
export function brief(seconds) {
    if (seconds === undefined) return "none";
    if (seconds >= 0.9995) return `${seconds.toFixed(1)}s`;
    const milliseconds = seconds * 1000;
    return `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)}ms`;
}

/** States in the order in which bars and legends show them. */
export const states = /** @type {const} */ ([
    "succeeded", "failed", "cancelled", "skipped", "executing", "dispatched", "ready", "pending",
]);

/** @typedef {typeof states[number]} State */

/**
 * How many operations there are.
 * @param {Api.SomeCounts} counts
 */
export function total(counts) {
    return states.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
}

/**
 * How many of them have finished.
 * @param {Api.SomeCounts} counts
 */
export function finished(counts) {
    return (counts.succeeded ?? 0) + (counts.failed ?? 0) + (counts.cancelled ?? 0)
        + (counts.skipped ?? 0);
}

/**
 * The share that has finished, in whole percent: 100 only when all have.
 * @param {Api.SomeCounts} counts
 */
export function percent(counts) {
    const all = total(counts);
    return all === 0 ? 0 : Math.floor(finished(counts) * 100 / all);
}

/**
 * `3 failed, 12 pending`: the counts in words.
 * @param {Api.SomeCounts} counts
 */
export function countsText(counts) {
    const parts = states.filter((state) => counts[state]).map((s) => `${counts[s]} ${s}`);
    return parts.join(", ") || "no operations";
}

/**
 * The state of an operation, or how it ended.
 * @param {{state: string, outcome?: string}} operation
 */
export function stateOf(operation) {
    return operation.outcome ?? operation.state;
}
