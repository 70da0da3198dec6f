// An input or an output, which can be anything and of any size.

import { request, sentence } from "./api.js";
import { amount } from "./format.js";
import { address } from "./routes.js";
import { h, useEffect, useState } from "./preact.js";

/** The most bytes that are shown. */
const mostBytes = 256 * 1024;

/** @typedef {{text?: string, note: string, isThere?: boolean}} Shown */

/**
 * An input or an output; it is fetched when the reader opens it.
 * @param {{parts: (string | number)[], title: string, id: string, none: string,
 *     version: string}} props `version`: changes when there may be another value
 */
export function Payload({ parts, title, id, none, version }) {
    const [isOpen, setOpen] = useState(false);
    const [shown, setShown] = useState(/** @type {Shown | undefined} */ (undefined));
    const url = address(parts);
    useEffect(() => {
        if (!isOpen) return undefined;
        const stop = new AbortController();
        load(url, stop.signal, none).then(setShown, (error) => {
            if (!stop.signal.aborted) setShown({ note: sentence(error) });
        });
        return () => stop.abort();
    }, [isOpen, url, version]);
    return h("details", {
        id, onToggle: (/** @type {Event} */ event) => {
            setOpen(/** @type {HTMLDetailsElement} */ (event.currentTarget).open);
        },
    }, h("summary", null, title),
    !isOpen ? null : shown === undefined ? h("p", { class: "empty" }, "Loading…") : [
        h("p", { class: "soft" }, shown.note, " ", shown.isThere === false ? null
            : h("a", { href: url, download: `${title.toLowerCase()}.txt` }, "Download")),
        shown.text === undefined ? null
            : h("pre", { tabindex: 0, role: "region", "aria-label": title }, shown.text),
    ]);
}

/**
 * Reads the beginning of a value.
 * @param {string} url
 * @param {AbortSignal} signal
 * @param {string} none what to say if there is no value
 * @returns {Promise<Shown>}
 */
async function load(url, signal, none) {
    const response = await request("GET", url, { signal });
    if (response.status === 204 || !response.body) return { note: none, isThere: false };
    const type = response.headers.get("Content-Type") ?? "";
    const { bytes, isCut } = await beginning(response.body);
    const size = isCut ? `The first ${amount(mostBytes, "memory")} of it` : "All of it";
    const note = `${size}, ${type || "of an unknown type"}.`;
    let text;
    try {
        text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut });
    } catch {
        return { note: `${amount(bytes.length, "memory")} that are no text, ${type}.` };
    }
    return { note, text: type.includes("json") && !isCut ? pretty(text) : text };
}

/** @param {ReadableStream<Uint8Array>} body */
async function beginning(body) {
    const reader = body.getReader();
    const bytes = new Uint8Array(mostBytes);
    let length = 0;
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return { bytes: bytes.subarray(0, length), isCut: false };
        const part = value.subarray(0, mostBytes - length);
        bytes.set(part, length);
        length += part.length;
        if (part.length < value.length) {
            await reader.cancel();
            return { bytes, isCut: true };
        }
    }
}

/** @param {string} text */
function pretty(text) {
    try {
        // Numbers that a browser would round are left as they are.
        return /\d{16}/.test(text) ? text : JSON.stringify(JSON.parse(text), null, 2);
    } catch {
        return text;
    }
}
