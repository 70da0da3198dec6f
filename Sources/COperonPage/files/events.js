// Server-sent events over fetch: EventSource shows no status codes, and chooses itself when to
// connect again.

import { request } from "./api.js";

/**
 * A browser opens six connections to a coordinator, for all windows together. So many of them may
 * be streams; the others are for requests.
 */
const streamsMax = 4;

/**
 * Runs `body` while it holds one of the connections for streams. All windows of this browser share
 * them.
 * @param {(isHeld: boolean) => Promise<void>} body `isHeld`: whether there was one. Where browsers
 *     have no locks, which is without TLS and not on this machine, there always is
 */
export async function withConnection(body) {
    const { locks } = navigator;
    if (!locks) return body(true);
    for (let number = 0; number < 2 * streamsMax; number += 1) {
        // The stream that this one follows gives its connection back in a moment.
        if (number === streamsMax) await new Promise((resolve) => setTimeout(resolve, 50));
        let isHeld = false;
        const name = `operon-stream-${number % streamsMax}`;
        await locks.request(name, { ifAvailable: true }, async (lock) => {
            isHeld = lock !== null;
            if (isHeld) await body(true);
        });
        if (isHeld) return undefined;
    }
    return body(false);
}

/**
 * Reads a stream of server-sent events until it ends.
 * @param {string} url
 * @param {AbortSignal} signal
 * @param {(kind: string, data: any) => void} onEvent
 * @param {() => void} [onOpen] called when the coordinator has answered
 */
export async function readEvents(url, signal, onEvent, onOpen) {
    const stop = new AbortController();
    const abort = () => stop.abort();
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    // A coordinator sends a comment every 15 s. A stream that is silent for longer is dead, even
    // if nobody has closed the connection.
    let silence = setTimeout(abort, 40_000);
    try {
        const headers = { Accept: "text/event-stream" };
        const response = await request("GET", url, { signal: stop.signal, headers });
        onOpen?.();
        const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
        const parse = parser(onEvent);
        const decoder = new TextDecoder();
        for (;;) {
            const { done, value } = await reader.read();
            if (done) return;
            clearTimeout(silence);
            silence = setTimeout(abort, 40_000);
            parse(decoder.decode(value, { stream: true }));
        }
    } finally {
        clearTimeout(silence);
        signal.removeEventListener("abort", abort);
        stop.abort();
    }
}

/**
 * Takes the text of a stream piece by piece, and reports each whole event.
 * @param {(kind: string, data: any) => void} onEvent
 * @returns {(text: string) => void}
 */
function parser(onEvent) {
    let rest = "";
    let kind = "message";
    /** @type {string[]} */
    let data = [];
    return (text) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        for (const raw of lines) {
            const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
            if (line === "") {
                if (data.length > 0) onEvent(kind, value(data.join("\n")));
                [kind, data] = ["message", []];
            } else if (line.startsWith("event:")) {
                kind = line.slice(6).trim();
            } else if (line.startsWith("data:")) {
                data.push(line.slice(5).replace(/^ /, ""));
            }
        }
    };
}

/**
 * The data of an event: JSON, or a sentence.
 * @param {string} text
 */
function value(text) {
    try {
        return JSON.parse(text);
    } catch {
        return text;
    }
}
