// What the page says and asks: the status line, and the one dialog that is open.

import { observable } from "./observable.js";

/**
 * @typedef {object} Notice
 * @property {string} text
 * @property {boolean} isError
 * @property {number} number tells two notices with the same text apart
 */

/** The last thing that was done or refused. */
export const notice = observable(/** @type {Notice | undefined} */ (undefined));

let count = 0;

/**
 * Says what was done, or what was refused.
 * @param {string} text
 * @param {boolean} [isError]
 */
export function notify(text, isError = false) {
    count += 1;
    notice.set({ text, isError, number: count });
}

/** The question that is open. */
export const question = observable(/** @type {Page.Question | undefined} */ (undefined));

/** @param {Page.Question} value */
export function ask(value) {
    question.set(value);
}

/** Whether the help for the keyboard is open. */
export const isHelpOpen = observable(false);
