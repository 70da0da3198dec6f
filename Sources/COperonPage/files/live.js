// The one stream of the page: what a graph does on the views of a graph, what the cluster does
// elsewhere. A hidden tab has no stream and asks nothing. If too many windows have streams, this
// one looks from time to time.

import { ApiError } from "./api.js";
import { readEvents, withConnection } from "./events.js";
import { setClock } from "./format.js";
import { observable } from "./observable.js";
import { address } from "./routes.js";

/** Seconds before the page tries again, and the most that they grow to. */
const [firstPause, longestPause] = [0.5, 5];

/** Seconds between two looks of a window without a stream. */
const lookPause = 2;

/**
 * What is known now. It is replaced as a whole, so that views can compare it.
 * @typedef {object} Live
 * @property {boolean} isLost the coordinator does not answer
 * @property {number} version grows whenever something may have changed
 * @property {Api.Cluster} [status]
 * @property {Api.GraphProgress} [progress]
 * @property {string} [problem] a sentence that ended the stream
 */

/** What is known now. */
export const live = observable(/** @type {Live} */ ({ isLost: false, version: 0 }));
/** @type {string | undefined} */
let watched;
let isAllowed = false;
/** @type {AbortController | undefined} */
let running;
/**
 * What the last look saw; `undefined`: there was none.
 * @type {string | undefined}
 */
let looked;

/** @param {Partial<Live>} change */
function update(change) {
    live.set({ ...live.get(), ...change });
}

/**
 * Chooses the stream.
 * @param {string | undefined} graph `undefined`: the cluster
 */
export function watch(graph) {
    if (graph === watched) return;
    watched = graph;
    update({ progress: undefined, problem: undefined });
    restart();
}

/**
 * Whether the reader may read, or must log in first.
 * @param {boolean} allowed
 */
export function allow(allowed) {
    if (allowed === isAllowed) return;
    isAllowed = allowed;
    restart();
}

/** Notes that the coordinator has answered and that anything may have changed. */
export function touch() {
    update({ isLost: false, version: live.get().version + 1 });
}

function restart() {
    running?.abort();
    running = undefined;
    looked = undefined;
    if (!isAllowed || document.hidden) return;
    running = new AbortController();
    void follow(watched, running.signal);
}

document.addEventListener("visibilitychange", restart);

/**
 * Reads the stream, again and again, until another one is chosen.
 * @param {string | undefined} graph
 * @param {AbortSignal} signal
 */
async function follow(graph, signal) {
    let pause = 0;
    while (!signal.aborted) {
        const start = Date.now();
        let isLook = false;
        try {
            await withConnection(async (isHeld) => {
                isLook = !isHeld;
                await read(graph, signal, isLook, () => {
                    pause = 0;
                });
            });
        } catch (error) {
            if (signal.aborted) return;
            // There is no such graph: its view says so. Or a login is needed.
            if (error instanceof ApiError && isFinal(error.status)) return;
            const isAnswer = error instanceof ApiError && error.status > 0;
            update(isAnswer ? { problem: error.message } : { isLost: true });
        }
        if (isLook && !live.get().isLost) {
            await waited(lookPause, signal);
            continue;
        }
        // A stream ends after an hour, and the next one follows at once.
        if (live.get().isLost || Date.now() - start < 5000) {
            pause = Math.min(longestPause, pause === 0 ? firstPause : pause * 2);
            await waited(pause, signal);
        }
    }
}

/**
 * Reads the stream until it ends.
 * @param {string | undefined} graph
 * @param {AbortSignal} signal
 * @param {boolean} isLook whether its first event is enough
 * @param {() => void} onOpen called when the coordinator has answered
 */
async function read(graph, signal, isLook, onOpen) {
    const end = new AbortController();
    const abort = () => end.abort();
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    try {
        await readEvents(address(stream(graph)), end.signal, (kind, data) => {
            if (end.signal.aborted) return;
            const text = isLook ? JSON.stringify([kind, data]) : undefined;
            // Lists are asked for again only if something has changed since the last look.
            if (text === undefined || text !== looked) take(kind, data);
            looked = text;
            if (isLook) abort();
        }, () => {
            onOpen();
            // What happened before the stream began is in the answers to new questions.
            if (!signal.aborted && (!isLook || live.get().isLost)) touch();
        });
    } catch (error) {
        if (!isLook || signal.aborted || !end.signal.aborted) throw error;
    } finally {
        signal.removeEventListener("abort", abort);
    }
}

/** @param {string | undefined} graph */
function stream(graph) {
    return graph === undefined ? ["progress"] : ["graphs", graph, "progress"];
}

/** @param {number} status */
function isFinal(status) {
    return status >= 400 && status < 500 && status !== 408;
}

/**
 * One event of the stream.
 * @param {string} kind
 * @param {any} data
 */
function take(kind, data) {
    if (kind === "status") {
        setClock(data.now);
        update({ status: data, version: live.get().version + 1, problem: undefined });
    } else if (kind === "progress") {
        update({ progress: data, version: live.get().version + 1, problem: undefined });
    } else if (kind === "problem") {
        update({ problem: String(data?.detail ?? data) });
    }
}

/**
 * @param {number} seconds
 * @param {AbortSignal} signal ends the wait
 */
function waited(seconds, signal) {
    return /** @type {Promise<void>} */ (new Promise((resolve) => {
        const end = () => {
            clearTimeout(timer);
            signal.removeEventListener("abort", end);
            resolve();
        };
        const timer = setTimeout(end, seconds * 1000);
        signal.addEventListener("abort", end);
    }));
}
