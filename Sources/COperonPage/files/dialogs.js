// The dialogs: a question, the login, the help for the keyboard.

import { sentence } from "./api.js";
import { isHelpOpen, notify, question } from "./notices.js";
import { areKeysOn, setKeysOn, shortcuts } from "./shortcuts.js";
import { logIn } from "./session.js";
import { h, useEffect, useRef, useState } from "./preact.js";

/** @typedef {import("../preact").Child} Child */

/**
 * A dialog over the page. The browser keeps the focus in it and closes it on Escape.
 * @param {{id: string, title: string, children?: Child, onClose: () => void,
 *     isFixed?: boolean}} props `isFixed`: Escape does not close it
 */
function Dialog({ id, title, children, onClose, isFixed = false }) {
    const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
    useEffect(() => {
        const dialog = element.current;
        const before = /** @type {HTMLElement | null} */ (document.activeElement);
        if (dialog && !dialog.open) dialog.showModal();
        return () => {
            dialog?.close();
            before?.focus();
        };
    }, []);
    return h("dialog", {
        id, ref: element, "aria-labelledby": `${id}-title`,
        onClose: () => {
            // Browsers close a dialog on the second Escape, whatever the page says.
            if (isFixed && element.current?.isConnected) element.current.showModal();
            else onClose();
        },
        onCancel: (/** @type {Event} */ event) => {
            if (isFixed) event.preventDefault();
        },
    }, h("h2", { id: `${id}-title` }, title), children);
}

/** The question that is open, if one is. */
export function QuestionDialog() {
    const value = question.use();
    if (!value) return null;
    return h(Question, { key: value.id, value });
}

/** @param {{value: Page.Question}} props */
function Question({ value }) {
    const [values, setValues] = useState(() => Object.fromEntries(
        (value.fields ?? []).map((field) => [field.name, field.value ?? ""]),
    ));
    const [problem, setProblem] = useState("");
    const [isBusy, setBusy] = useState(false);
    const close = () => {
        if (question.get() === value) question.set(undefined);
    };
    const submit = async (/** @type {Event} */ event) => {
        event.preventDefault();
        if (isBusy) return;
        setBusy(true);
        setProblem("");
        try {
            notify(await value.act(values));
            close();
        } catch (error) {
            setProblem(sentence(error));
            setBusy(false);
        }
    };
    const fields = (value.fields ?? []).filter(({ onlyIf }) => (
        !onlyIf || values[onlyIf[0]] === onlyIf[1]));
    return h(Dialog, { id: value.id, title: value.title, onClose: close },
        h("form", { onSubmit: submit },
            value.text ? h("p", null, value.text) : null,
            fields.map((field) => h(FieldInput, {
                key: field.name, field, value: values[field.name],
                onChange: (text) => setValues((all) => ({ ...all, [field.name]: text })),
            })),
            problem ? h("p", { class: "refused", role: "alert", "data-test": "refused" }, problem)
                : null,
            h("div", { class: "actions" },
                h("button", {
                    class: value.isDangerous ? "danger" : "primary", "data-test": "submit",
                    "aria-disabled": String(isBusy),
                }, value.submit),
                h("button", { type: "button", onClick: close, "data-test": "close" }, "Close"))));
}

/** @param {{field: Page.Field, value: string, onChange: (text: string) => void}} props */
function FieldInput({ field, value, onChange }) {
    const hint = field.hint ? h("span", { class: "hint" }, field.hint) : null;
    const take = (/** @type {Event} */ event) => {
        const input = /** @type {HTMLInputElement} */ (event.currentTarget);
        onChange(field.kind === "check" ? (input.checked ? "yes" : "") : input.value);
    };
    const common = { name: field.name, "data-test": `field-${field.name}` };
    if (field.kind === "check") {
        return h("label", { class: "check" },
            h("input", { ...common, type: "checkbox", checked: value === "yes", onChange: take }),
            h("span", null, field.label, hint));
    }
    if (field.kind === "select") {
        return h("label", null, field.label, hint,
            h("select", { ...common, onChange: take }, (field.options ?? []).map((option) => (
                h("option", { value: option.value, selected: option.value === value },
                    option.label)))));
    }
    if (field.kind === "area") {
        return h("label", null, field.label, hint,
            h("textarea", { ...common, rows: 4, spellcheck: false, value, onInput: take,
                onChange: take }));
    }
    return h("label", null, field.label, hint,
        h("input", {
            ...common, type: field.kind ?? "text", min: field.min, value, autocomplete: "off",
            required: field.isRequired, onInput: take, onChange: take,
        }));
}

/** The login, over whatever the page showed. */
export function LoginDialog() {
    const [token, setToken] = useState("");
    const [problem, setProblem] = useState("");
    const submit = async (/** @type {Event} */ event) => {
        event.preventDefault();
        try {
            await logIn({ token });
        } catch (error) {
            setProblem(sentence(error));
        }
    };
    return h(Dialog, { id: "login", title: "Log in to Operon", onClose: () => {}, isFixed: true },
        h("form", { onSubmit: submit },
            h("p", null, "This coordinator asks for a token. It is kept until you log out. "
                + "“operon page” prints an address that needs none."),
            h("label", null, "Token",
                h("input", {
                    type: "password", name: "token", id: "token", required: true,
                    autocomplete: "current-password", value: token,
                    onInput: (/** @type {Event} */ event) => {
                        setToken(/** @type {HTMLInputElement} */ (event.currentTarget).value);
                    },
                })),
            problem ? h("p", { class: "refused", role: "alert", "data-test": "refused" }, problem)
                : null,
            h("div", { class: "actions" },
                h("button", { class: "primary", "data-test": "submit" }, "Log in"))));
}

/** The keys, if the help is open. */
export function HelpDialog() {
    const isOpen = isHelpOpen.use();
    const areOn = areKeysOn.use();
    if (!isOpen) return null;
    const close = () => isHelpOpen.set(false);
    return h(Dialog, { id: "help", title: "Keys", onClose: close },
        h("dl", { class: "keys" }, shortcuts.map(([keys, text]) => h("div", { key: keys },
            h("dt", null, keys.split(" ").map((key, place) => (
                [place > 0 ? " " : "", h("kbd", null, key)]))),
            h("dd", null, text)))),
        h("label", { class: "check" },
            h("input", {
                type: "checkbox", checked: areOn, "data-test": "keys-on",
                onChange: (/** @type {Event} */ event) => {
                    setKeysOn(/** @type {HTMLInputElement} */ (event.currentTarget).checked);
                },
            }),
            h("span", null, "Use these keys")),
        h("div", { class: "actions" },
            h("button", { type: "button", onClick: close, "data-test": "close" }, "Close")));
}
