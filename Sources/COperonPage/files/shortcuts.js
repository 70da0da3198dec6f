// The keys of the whole page. The picture and the timeline have keys of their own.

import { isHelpOpen } from "./notices.js";
import { observable } from "./observable.js";
import { go, link } from "./routes.js";

/** @type {[string, string][]} */
export const shortcuts = [
    ["/", "go to the filter"],
    ["g g", "go to the graphs"],
    ["g q", "go to the queues and keys"],
    ["g w", "go to the workers"],
    ["g t", "go to the triggers"],
    ["g c", "go to the cluster"],
    ["?", "show these keys"],
    ["Escape", "close a dialog"],
    ["+ - 0", "in the picture and the timeline: zoom in, zoom out, show all"],
    ["← → ↑ ↓", "in the picture: move; in the timeline: move, choose an attempt"],
    ["Enter", "open the operation"],
];

/** @type {Record<string, string>} */
const views = { g: "graphs", q: "queues", w: "workers", t: "triggers", c: "cluster" };

/** Readers who speak to their computer turn single keys off (WCAG 2.1.4). */
export const areKeysOn = observable(stored() !== "off");

function stored() {
    try {
        return localStorage.getItem("operon.keys");
    } catch {
        return null; // the browser keeps nothing for this page
    }
}

/** @param {boolean} isOn */
export function setKeysOn(isOn) {
    areKeysOn.set(isOn);
    try {
        localStorage.setItem("operon.keys", isOn ? "on" : "off");
    } catch {
        // It holds until the page is closed.
    }
}

/** When `g` was pressed, so that the next key chooses a view. */
let goSince = 0;

/** @param {KeyboardEvent} event */
function press(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !areKeysOn.get()) return;
    if (document.querySelector("dialog[open]")) return;
    const isGoing = event.timeStamp - goSince < 1500;
    goSince = 0;
    if (isGoing && views[event.key]) {
        go(link([views[event.key]]));
    } else if (event.key === "g") {
        goSince = event.timeStamp;
    } else if (event.key === "?") {
        isHelpOpen.set(true);
    } else if (event.key === "/") {
        /** @type {HTMLElement | null} */ (document.querySelector("[data-filter]"))?.focus();
    } else {
        return;
    }
    event.preventDefault();
}

document.addEventListener("keydown", press);
