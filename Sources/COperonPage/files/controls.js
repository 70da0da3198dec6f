// Filters, pages and buttons: what a reader sets.

import { useMayAct, useMayCancel } from "./session.js";
import { link, replaceAddress } from "./routes.js";
import { h, useEffect, useRef, useState } from "./preact.js";

/** @typedef {import("../preact").Child} Child */

/**
 * A choice of a filter, kept in the address.
 * @param {{label: string, name: string, parts: (string | number)[],
 *     query: Record<string, string>, options: readonly string[], all: string}} props
 */
export function Choice({ label, name, parts, query, options, all }) {
    const choose = (/** @type {Event} */ event) => {
        const value = /** @type {HTMLSelectElement} */ (event.currentTarget).value;
        replaceAddress(link(parts, { ...query, [name]: value, after: undefined }));
    };
    return h("label", null, label,
        h("select", { name, "data-test": `filter-${name}`, onChange: choose },
            h("option", { value: "", selected: !query[name] }, all),
            options.map((value) => h("option", {
                key: value, value, selected: query[name] === value,
            }, value))));
}

/**
 * A text of a filter, kept in the address. It is used when the reader has stopped typing.
 * @param {{label: string, name: string, parts: (string | number)[],
 *     query: Record<string, string>, isFirst?: boolean}} props
 *     `isFirst`: the key `/` comes here
 */
export function TextFilter({ label, name, parts, query, isFirst = false }) {
    const known = query[name] ?? "";
    const [text, setText] = useState(known);
    // What the timer uses is as it is then: another filter may have been chosen meanwhile.
    const address = useRef("");
    // The text that this field has given to the address: what was typed since is newer.
    const own = useRef(known);
    address.current = link(parts, { ...query, [name]: text, after: undefined });
    useEffect(() => {
        if (text === known) return undefined;
        const timer = setTimeout(() => {
            own.current = text;
            replaceAddress(address.current);
        }, 250);
        return () => clearTimeout(timer);
    }, [text]);
    // A link or the browser's own back may lead to another text.
    useEffect(() => {
        if (known !== own.current) setText(known);
        own.current = known;
    }, [known]);
    return h("label", null, label,
        h("input", {
            type: "search", name, value: text, autocomplete: "off", spellcheck: false,
            "data-test": `filter-${name}`, "data-filter": isFirst ? "first" : undefined,
            onInput: (/** @type {Event} */ event) => {
                setText(/** @type {HTMLInputElement} */ (event.currentTarget).value);
            },
        }));
}

/**
 * The filters of a list.
 * @param {{children?: Child, label: string}} props
 */
export function Filters({ children, label }) {
    return h("form", {
        class: "filters", role: "search", "aria-label": label,
        onSubmit: (/** @type {Event} */ event) => event.preventDefault(),
    }, children);
}

/**
 * Links to the first and the next page. The browser's own back goes to the page before.
 * @param {{parts: (string | number)[], query: Record<string, string>,
 *     next?: string | number}} props
 */
export function Pager({ parts, query, next }) {
    if (next === undefined && query.after === undefined) return null;
    return h("nav", { class: "pager", "aria-label": "Pages" },
        query.after === undefined
            ? null
            : h("a", { href: link(parts, { ...query, after: undefined }), "data-test": "first" },
                "First page"),
        next === undefined
            ? h("span", { class: "soft" }, "This is the last page.")
            : h("a", { href: link(parts, { ...query, after: next }), "data-test": "next" },
                "Next page"));
}

/**
 * Buttons that do something. Readers who may not act do not see them.
 * @param {{label: string, children?: Child, cancel?: Child, submittedBy?: string}} props
 *     `cancel`: the last button, which whoever has submitted the graph sees, too;
 *     `submittedBy`: who that is
 */
export function Actions({ label, children, cancel, submittedBy }) {
    const mayAct = useMayAct();
    const mayCancel = useMayCancel(submittedBy);
    if (!mayAct && (!mayCancel || !cancel)) return null;
    return h("div", { class: "actions", role: "group", "aria-label": label },
        mayAct ? children : null, cancel);
}

/**
 * A button.
 * @param {{name: string, label?: string, onClick: () => void, children?: Child,
 *     isDangerous?: boolean, isDisabled?: boolean}} props `label`: what a screen reader says, if
 *     the text alone would not tell which of several is meant
 */
export function Button({ name, label, onClick, children, isDangerous, isDisabled }) {
    return h("button", {
        type: "button", class: isDangerous ? "danger" : "", "data-test": name,
        "aria-label": label, disabled: isDisabled, onClick,
    }, children);
}
