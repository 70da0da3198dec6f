// Values from the coordinator that stay current.

import { ApiError, get } from "./api.js";
import { live } from "./live.js";
import { mayRead } from "./session.js";
import { useEffect, useState } from "./preact.js";

/**
 * What is known of a value.
 * @template T
 * @typedef {object} Resource
 * @property {T} [value]
 * @property {ApiError} [error] why there is no newer value
 * @property {boolean} isOld the value belongs to the address before, and the next one is awaited
 */

/**
 * How to keep a value current.
 * @typedef {object} Upkeep
 * @property {number} [every] ask at least this often, in seconds
 * @property {number} [rest] wait at least this many times as long as the last answer took
 * @property {boolean} [isFixed] the value does not change: ask once
 * @property {number} [again] ask for a fixed value again when this changes
 */

/**
 * The value at an address. It is asked for again when something has changed: at most once a second,
 * never twice at the same time, and less often if the answers take long.
 * @template T
 * @param {string | undefined} url `undefined`: nothing is asked
 * @param {Upkeep} [upkeep]
 * @returns {Resource<T>}
 */
export function useResource(url, upkeep = {}) {
    const [state, setState] = useState(
        /** @type {{url?: string, value?: any, error?: ApiError}} */ ({}),
    );
    useEffect(() => {
        if (url === undefined) return undefined;
        return keepCurrent(url, upkeep, (change) => {
            // The value of another address is kept only until this one has answered.
            setState(({ value, url: last }) => ({
                url, value: last === url ? value : undefined, ...change,
            }));
        });
    }, [url, upkeep.every, upkeep.rest, upkeep.isFixed, upkeep.again]);
    return { value: state.value, error: state.error, isOld: state.url !== url };
}

/**
 * Asks for a value now, and again whenever something has changed.
 * @param {string} url
 * @param {Upkeep} upkeep
 * @param {(change: {value?: unknown, error?: ApiError}) => void} report
 * @returns {() => void} ends that
 */
function keepCurrent(url, { every, rest = 10, isFixed = false }, report) {
    const stop = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    let isAsking = false;
    let isDone = false;
    let seen = -1;
    let earliest = 0;

    const ask = async () => {
        timer = undefined;
        if (isAsking || stop.signal.aborted || document.hidden || !mayRead()) return;
        isAsking = true;
        seen = live.get().version;
        const start = performance.now();
        try {
            const value = await get(url, stop.signal);
            if (stop.signal.aborted) return;
            isDone = isFixed;
            report({ value });
        } catch (error) {
            if (stop.signal.aborted) return;
            if (error instanceof ApiError && error.status > 0 && error.status !== 401) {
                report({ error });
            } else if (!(error instanceof ApiError)) {
                report({ error: new ApiError(String(error), -1, "internal") });
            }
        }
        isAsking = false;
        const took = performance.now() - start;
        earliest = performance.now() + Math.max(1000 - took, took * rest);
        plan();
    };
    const plan = () => {
        if (isAsking || isDone || timer !== undefined || stop.signal.aborted) return;
        const isDue = live.get().version !== seen;
        if (!isDue && every === undefined) return;
        const pause = earliest - performance.now();
        timer = setTimeout(ask, Math.max(pause, isDue ? 0 : (every ?? 0) * 1000));
    };
    const changed = () => {
        // A planned question that only keeps time gives way to one that has a reason.
        if (every !== undefined && timer !== undefined) {
            clearTimeout(timer);
            timer = undefined;
        }
        plan();
    };
    const unsubscribe = live.subscribe(changed);
    void ask();
    return () => {
        stop.abort();
        clearTimeout(timer);
        unsubscribe();
    };
}
