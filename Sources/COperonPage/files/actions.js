// What a reader can do to graphs and operations, and what the page says afterwards. The words are
// those of the commands of operon.

import { JsonText, send, sentence } from "./api.js";
import { plural, short } from "./format.js";
import { touch } from "./live.js";
import { ask, notify } from "./notices.js";
import { operationPart } from "./routes.js";

/** Something that commands act on: how it is called, and its address. */
/** @typedef {{title: string, parts: (string | number)[], isOperation?: boolean}} Subject */

export const priorities = ["veryLow", "low", "normal", "high", "veryHigh"];

/** @param {{id: number, name: string}} graph @returns {Subject} */
export function graphSubject({ id, name }) {
    return { title: `graph ${id} “${name}”`, parts: ["graphs", id] };
}

/** @param {Api.Operation} operation @returns {Subject} */
export function operationSubject(operation) {
    return {
        title: `operation ${operation.graph}/${operation.name}`,
        parts: ["graphs", operation.graph, "operations", operationPart(operation)],
        isOperation: true,
    };
}

/** @param {{name: string}} queue @returns {Subject} */
export function queueSubject({ name }) {
    return { title: `queue “${name}”`, parts: ["queues", name] };
}

/**
 * Does something at once that can be undone, and says what it did.
 * @param {() => Promise<string>} act
 */
export async function perform(act) {
    try {
        notify(await act());
    } catch (error) {
        notify(sentence(error), true);
    }
}

/**
 * What was cancelled, what still runs, and what continues without it.
 * @param {Api.Command} answer
 * @param {Subject} subject
 */
function cancelledText(answer, { title, isOperation }) {
    if (answer.affected === 0) return `Nothing left to cancel in ${title}.`;
    const isOne = isOperation && answer.affected === 1;
    let text = `Cancelled ${title}`;
    text += isOne ? "." : `: ${plural(answer.affected, "operation")}.`;
    if (answer.running > 0) {
        const they = answer.running === 1
            ? `${isOne ? "It" : "1 of them"} is running and was`
            : `${answer.running} of them are running and were`;
        text += ` ${they} asked to stop.`;
    }
    if (answer.released > 0) {
        const depend = answer.released === 1 ? "depends" : "depend";
        text += ` ${plural(answer.released, "operation")} ${depend} on `;
        text += `${answer.affected === 1 ? "it" : "them"} and may still run.`;
    }
    return text + effectText(answer);
}

/** @param {Api.Command} answer */
function effectText(answer) {
    return answer.isEffective ? "" : " Operations that a worker has already may still start.";
}

/** @param {Subject} subject */
export function askCancel(subject) {
    const { title, parts, isOperation } = subject;
    ask({
        id: "cancel-dialog",
        title: `Cancel ${title}?`,
        text: "Waiting operations are cancelled at once; running ones are asked to stop. "
            + "A cancelled operation can be retried, but its attempt does not go on.",
        fields: [
            { name: "reason", label: "Reason", hint: "Optional; shown to others." },
            /** @type {const} */ ({
                name: "cascade", label: "Cancel the operations that depend on it, too",
                kind: "check",
            }),
        ].slice(0, isOperation ? 2 : 1),
        submit: "Cancel it",
        isDangerous: true,
        act: async ({ reason, cascade }) => {
            const body = isOperation ? { reason, cascade: cascade === "yes" } : { reason };
            const answer = await send("POST", [...parts, "cancel"], body);
            touch();
            return cancelledText(answer, subject);
        },
    });
}

/** @param {Subject} subject */
export function askSuspend({ title, parts }) {
    ask({
        id: "suspend-dialog",
        title: `Suspend ${title}?`,
        text: "Nothing in it starts until it is resumed. Running operations go on.",
        fields: [{ name: "reason", label: "Reason", hint: "Optional; shown to others." }],
        submit: "Suspend",
        act: async ({ reason }) => {
            const answer = await send("POST", [...parts, "suspend"], reason ? { reason } : {});
            touch();
            const still = answer.running === 1 ? "is still running" : "are still running";
            const running = answer.running > 0
                ? ` ${plural(answer.running, "operation")} ${still}.` : "";
            return `Suspended ${title}.${running}${effectText(answer)}`;
        },
    });
}

/** @param {Subject} subject */
export function resume({ title, parts, isOperation }) {
    return perform(async () => {
        const answer = await send("POST", [...parts, "resume"]);
        touch();
        if (isOperation) return `Resumed ${title}.`;
        const count = plural(answer.affected, "unfinished operation");
        return `Resumed ${title}, which has ${count}.`;
    });
}

/**
 * @param {{id: number, name: string, counts: Api.SomeCounts}} graph
 */
export function askRetry(graph) {
    const failed = graph.counts.failed ?? 0;
    ask({
        id: "retry-dialog",
        title: `Retry ${graphSubject(graph).title}?`,
        text: `Each failed operation (${failed}) gets another round, and so does everything that `
            + "was skipped because of it.",
        fields: [{
            name: "cancelled", kind: "check", label: "Retry the cancelled operations, too",
            value: failed === 0 ? "yes" : "",
        }],
        submit: "Retry",
        act: ({ cancelled }) => retried(graph.id, { cancelled: cancelled === "yes" }),
    });
}

/** @param {Api.Operation} operation */
export function askRetryOperation(operation) {
    ask({
        id: "retry-dialog",
        title: `Retry ${operationSubject(operation).title}?`,
        text: "It gets another round, and so does everything that was skipped because of it. "
            + "If it was skipped itself, what caused that is retried.",
        submit: "Retry",
        act: () => retried(operation.graph, { operations: [operation.name], cancelled: true }),
    });
}

/**
 * @param {number} graph
 * @param {Api.RetryRequest} body
 */
async function retried(graph, body) {
    /** @type {Api.Command} */
    const answer = await send("POST", ["graphs", graph, "retry"], body);
    touch();
    if (answer.affected === 0) return `Graph ${graph} has nothing to retry.`;
    return `${plural(answer.affected, "operation")} of graph ${graph} will run again.`;
}

/**
 * @param {string} current
 * @returns {Page.Field}
 */
export function priorityField(current) {
    return {
        name: "priority", label: "Priority", kind: "select", value: current,
        options: priorities.map((value) => ({ value, label: value })),
    };
}

/** @param {Api.Operation} operation */
export function askPriority(operation) {
    const { title, parts } = operationSubject(operation);
    ask({
        id: "priority-dialog",
        title: `Priority of ${title}`,
        text: "The ready operations of one queue start in the order of their priority.",
        fields: [priorityField(operation.priority)],
        submit: "Set",
        act: async ({ priority }) => {
            await send("PUT", [...parts, "priority"], { priority });
            touch();
            return `The priority of ${title} is ${priority}.`;
        },
    });
}

/** The outcomes that somebody outside can report. */
const outcomes = ["succeeded", "failed", "cancelled"];

/**
 * Completes an external operation.
 * @param {Api.Operation} operation
 * @param {string} attempt the attempt that the reader sees; another one is refused
 */
export function askComplete(operation, attempt) {
    const { title, parts } = operationSubject(operation);
    ask({
        id: "complete-dialog",
        title: `Complete ${title}`,
        text: "This outcome is final for the attempt.",
        fields: [
            { name: "outcome", label: "Outcome", kind: "select", value: "succeeded",
                options: outcomes.map((value) => ({ value, label: value })) },
            { name: "output", label: "Output", kind: "area", onlyIf: ["outcome", "succeeded"],
                hint: "Optional JSON, for the operations that depend on it." },
            { name: "message", label: "Error message", onlyIf: ["outcome", "failed"],
                isRequired: true },
            { name: "reason", label: "Reason", hint: "Optional.",
                onlyIf: ["outcome", "cancelled"] },
        ],
        submit: "Complete",
        act: async (values) => {
            await send("POST", [...parts, "complete"], completion(values, attempt));
            touch();
            const verb = values.outcome === "cancelled" ? "was cancelled" : values.outcome;
            return `Completed ${title}: it ${verb}.`;
        },
    });
}

/**
 * @param {Record<string, string>} values of the form
 * @param {string | undefined} attempt
 * @returns {Api.CompleteRequest | JsonText}
 */
function completion({ outcome, output, message, reason }, attempt) {
    if (outcome === "failed") return { outcome, error: { message }, attempt };
    if (outcome === "cancelled") return { outcome, reason: reason || undefined, attempt };
    if (output.trim() === "") return { outcome: "succeeded", attempt };
    const rest = JSON.stringify({ outcome: "succeeded", attempt }).slice(0, -1);
    return new JsonText(`${rest}, "output": ${checked(output, "The output")}}`);
}

/**
 * A text that is JSON. It is not parsed and written again, which would change large numbers.
 * @param {string} text
 * @param {string} subject of the sentence that says what is wrong
 */
export function checked(text, subject) {
    try {
        JSON.parse(text);
        return text;
    } catch (error) {
        throw new Error(`${subject} is not JSON: ${sentence(error)}.`);
    }
}

/** @param {Api.Worker} worker */
export function askDrain(worker) {
    ask({
        id: "drain-dialog",
        title: `Drain worker ${worker.name}?`,
        text: "It takes no new operations, waits for the running ones, stops those that are left, "
            + `and exits. It holds ${plural(worker.held, "attempt")}, and it was heard `
            + `${short(worker.heardSecondsAgo)} ago.`,
        submit: "Drain it",
        isDangerous: true,
        act: async () => {
            await send("POST", ["workers", worker.id, "drain"]);
            touch();
            return `Worker ${worker.name} drains: it takes no new operations.`;
        },
    });
}
