// Values that several components show.

import { useEffect, useState } from "./preact.js";

/**
 * @template T
 * @typedef {object} Observable
 * @property {() => T} get
 * @property {(value: T) => void} set
 * @property {() => T} use the value in a component, which is drawn again when it changes
 * @property {(listener: () => void) => () => void} subscribe returns what ends the subscription
 */

/**
 * @template T
 * @param {T} initial
 * @returns {Observable<T>}
 */
export function observable(initial) {
    let value = initial;
    /** @type {Set<() => void>} */
    const listeners = new Set();
    /** @param {() => void} listener */
    const subscribe = (listener) => {
        listeners.add(listener);
        return () => {
            listeners.delete(listener);
        };
    };
    const use = () => {
        const [, redraw] = useState(0);
        useEffect(() => {
            let seen = value;
            const compare = () => {
                if (seen === value) return;
                seen = value;
                redraw((count) => count + 1);
            };
            // It may have changed between the first drawing and this effect.
            redraw((count) => count + 1);
            return subscribe(compare);
        }, []);
        return value;
    };
    return {
        get: () => value,
        set: (next) => {
            value = next;
            for (const listener of [...listeners]) listener();
        },
        use,
        subscribe,
    };
}
