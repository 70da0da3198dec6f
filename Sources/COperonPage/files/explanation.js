// Why an operation does not run, in words and with links.

import { localTime, stateOf } from "./format.js";
import { detail } from "./operations-table.js";
import { useResource } from "./resource.js";
import { address } from "./routes.js";
import { OperationLink, Section } from "./ui.js";
import { h } from "./preact.js";

/** @param {{parts: (string | number)[]}} props `parts`: the address of the operation */
export function Explanation({ parts }) {
    /** @type {import("./resource.js").Resource<Api.Explanation>} */
    const { value } = useResource(address([...parts, "explain"]));
    if (!value) return null;
    const { operation, reasons, chain, leftOut, rootReasons } = value;
    if (reasons.length === 0 && chain.length === 0) return null;
    const isSkipped = operation.outcome === "skipped";
    return h(Section, { title: isSkipped ? "Why it was skipped" : "Why it waits", id: "explain" },
        h(Reasons, { reasons }),
        chain.length > 0 ? h("ol", { class: "chain" }, chain.map((link, place) => [
            leftOut && place === chain.length - 1
                ? h("li", { key: "left out", class: "soft" }, `… ${leftOut} more …`) : null,
            h("li", { key: `${link.graph}/${link.index}` }, "because ",
                h(OperationLink, { operation: link, isWhole: true }), " ", ...said(link)),
        ])) : null,
        rootReasons ? h(Reasons, { reasons: rootReasons }) : null);
}

/**
 * `failed: exit code 2`, `was skipped because of 3/a`, `is executing`.
 * @param {Api.Operation} operation
 * @returns {import("../preact").Child[]}
 */
function said(operation) {
    const state = stateOf(operation);
    const verb = !operation.outcome ? "is "
        : operation.outcome === "cancelled" || operation.outcome === "skipped" ? "was " : "";
    const why = operation.outcome ? detail(operation) : "";
    return [verb + state, why ? (operation.outcome === "skipped" ? " " : ": ") : "", why];
}

/** @param {{reasons: Api.Reason[]}} props */
function Reasons({ reasons }) {
    if (reasons.length === 0) return null;
    return h("ul", { class: "reasons" }, reasons.map((reason) => (
        h("li", { key: reason.code + reason.text, "data-code": reason.code },
            ...linked(reason), reason.until ? ` (until ${localTime(reason.until)})` : ""))));
}

/**
 * The sentence of a reason, in which the names of operations are links. Operations that it does
 * not name follow it.
 * @param {Api.Reason} reason
 * @returns {import("../preact").Child[]}
 */
function linked({ text, operations, more }) {
    /** @type {import("../preact").Child[]} */
    const parts = [];
    const others = [];
    let rest = text;
    for (const operation of operations) {
        const place = rest.indexOf(`“${operation.name}”`);
        if (place < 0) {
            others.push(operation);
            continue;
        }
        parts.push(rest.slice(0, place), h(OperationLink, { operation, isWhole: true }));
        rest = rest.slice(place + operation.name.length + 2);
    }
    parts.push(rest);
    others.forEach((operation, place) => {
        parts.push(place === 0 ? " (" : ", ", h(OperationLink, { operation, isWhole: true }));
    });
    if (others.length > 0) parts.push(more > 0 ? `, ${more} more)` : ")");
    return parts;
}
