// What an operation prints, as it happens.

import { ApiError, sentence } from "./api.js";
import { readEvents, withConnection } from "./events.js";
import { plural } from "./format.js";
import { LogLines } from "./log-lines.js";
import { address } from "./routes.js";
import { mayRead } from "./session.js";
import { Section } from "./ui.js";
import { h, useEffect, useLayoutEffect, useRef, useState } from "./preact.js";

/** @typedef {"opening" | "open" | "ended" | "cut" | "refused" | "waiting"} Phase */

/** Milliseconds until a window asks again whether it may follow a log. */
const waitingPause = 2000;

/**
 * The log of an operation. It follows until the operation has finished.
 * @param {{parts: (string | number)[], round: number, hasBegun: boolean,
 *     isFinished: boolean}} props `parts`: the address of the operation; `hasBegun`: whether it has
 *     had an attempt
 */
export function LogSection({ parts, round, hasBegun, isFinished }) {
    const lines = useRef(new LogLines());
    const [{ phase, problem }, setPhase] = useState(
        /** @type {{phase: Phase, problem?: string}} */ ({ phase: "opening" }),
    );
    const [, redraw] = useState(0);
    const url = address([...parts, "log"], { follow: "true" });
    // What has not begun has no log: a stream of it would take a connection for nothing.
    const isRead = hasBegun || isFinished;
    useEffect(() => !isRead ? undefined : follow(url, isFinished, {
        begin: () => {
            lines.current = new LogLines();
        },
        piece: (piece) => lines.current.add(piece),
        draw: () => redraw((count) => count + 1),
        phase: (next, text) => setPhase({ phase: next, problem: text }),
    }), [url, round, isRead, isFinished]);
    const { leftOut, count } = lines.current;
    return h(Section, { title: "Log", id: "log-section", aside: h("span", {
        class: "soft", id: "log-phase", "data-phase": phase,
    }, problem ?? phaseText(phase)) },
        leftOut > 0
            ? h("p", { class: "soft", id: "log-left-out" },
                `The first ${plural(leftOut, "line")} are left out here. To see all: operon logs `
                + `${parts[1]}/${parts[3]}`)
            : null,
        count > 0
            ? h(LogText, { lines: lines.current })
            : phase === "waiting" ? null : h("p", { class: "empty", id: "log-empty" },
                isRead && phase === "opening" ? "Loading…"
                : phase === "ended" ? "It printed nothing." : "It has printed nothing so far."));
}

/** @param {Phase} phase */
function phaseText(phase) {
    return {
        opening: "", open: "following", ended: "complete", refused: "",
        cut: "The stream was cut. Trying again…",
        waiting: "Too many windows of this page are open. Close one to follow this log.",
    }[phase];
}

/** @param {{lines: LogLines}} props */
function LogText({ lines }) {
    const element = useRef(/** @type {HTMLElement | null} */ (null));
    const isAtEnd = useRef(true);
    useLayoutEffect(() => {
        const box = element.current;
        if (box && isAtEnd.current) box.scrollTop = box.scrollHeight;
    });
    return h("pre", {
        id: "log", class: "log", ref: element, tabindex: 0, role: "region",
        "aria-label": "What it printed",
        onScroll: () => {
            const box = element.current;
            if (box) isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
        },
    }, lines.blocks.map((block) => (
        h("span", { key: block.number }, block.lines.join("\n") + "\n"))));
}

/**
 * @typedef {object} Reader
 * @property {() => void} begin the log is sent from its beginning
 * @property {(piece: Api.Log) => void} piece
 * @property {() => void} draw
 * @property {(phase: Phase, problem?: string) => void} phase
 */

/**
 * Reads the stream until the operation has finished, and again if it is cut. A hidden tab reads
 * nothing.
 * @param {string} url
 * @param {boolean} isFinished whether the stream ends at once, and keeps no connection
 * @param {Reader} reader
 * @returns {() => void} ends that
 */
function follow(url, isFinished, reader) {
    /** @type {AbortController | undefined} */
    let running;
    let isComplete = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let drawing;
    // Whatever arrives within a tenth of a second is drawn at once.
    const drawSoon = () => {
        drawing ??= setTimeout(() => {
            drawing = undefined;
            reader.draw();
        }, 100);
    };
    const read = async (/** @type {AbortSignal} */ signal) => {
        for (let pause = 500; !signal.aborted && !isComplete; pause = Math.min(5000, pause * 2)) {
            let isWaiting = false;
            try {
                if (mayRead()) await withConnection(async (isHeld) => {
                    isWaiting = !isHeld && !isFinished;
                    if (!isWaiting) await readEvents(url, signal, (kind, data) => {
                        if (signal.aborted) return;
                        if (kind === "log") reader.piece(data);
                        if (kind === "end") isComplete = true;
                        drawSoon();
                    }, () => {
                        reader.begin();
                        reader.phase("open");
                        pause = 500;
                    });
                });
            } catch (error) {
                if (signal.aborted) return;
                const isAnswer = error instanceof ApiError && error.status >= 400
                    && error.status < 500;
                if (isAnswer && error.status !== 401) {
                    reader.phase("refused", sentence(error));
                    return;
                }
            }
            if (signal.aborted) return;
            reader.phase(isComplete ? "ended" : isWaiting ? "waiting" : "cut");
            if (isWaiting) pause = waitingPause;
            if (!isComplete) await new Promise((resolve) => setTimeout(resolve, pause));
        }
    };
    const start = () => {
        running?.abort();
        if (document.hidden || isComplete) return;
        running = new AbortController();
        void read(running.signal);
    };
    document.addEventListener("visibilitychange", start);
    start();
    return () => {
        document.removeEventListener("visibilitychange", start);
        clearTimeout(drawing);
        running?.abort();
    };
}
