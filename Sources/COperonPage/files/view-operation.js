// An operation: what it is, why it does not run, its attempts, its log.

import {
    askCancel, askComplete, askPriority, askRetryOperation, askSuspend, operationSubject, resume,
} from "./actions.js";
import { Actions, Button } from "./controls.js";
import { plural, short, stateOf } from "./format.js";
import { live } from "./live.js";
import { LogSection } from "./log.js";
import { detail } from "./operations-table.js";
import { Payload } from "./payload.js";
import { useResource } from "./resource.js";
import { address, link } from "./routes.js";
import { Explanation } from "./explanation.js";
import {
    Duration, Facts, Heading, Missing, OperationLink, Section, State, table, Time,
} from "./ui.js";
import { h } from "./preact.js";

/** As many dependencies are listed as the coordinator names dependents. */
const dependenciesMax = 100;

/** @param {{route: Page.Route}} props */
export function OperationView({ route }) {
    const parts = ["graphs", route.graph ?? "", "operations", route.operation ?? ""];
    /** @type {import("./resource.js").Resource<Api.OperationDetail>} */
    const { value, error } = useResource(address(parts));
    const title = value?.operation.name ?? route.operation ?? "";
    if (!value) {
        return h("div", null, h(Heading, { title }), h(Missing, { error }));
    }
    const { operation } = value;
    // The number of the graph, so that a newer graph of the same name does not get the commands.
    const own = [...parts.slice(0, 1), operation.graph, ...parts.slice(2)];
    return h("div", null,
        h("p", { class: "path" }, h("a", { href: link(["graphs"]) }, "Graphs"), " / ",
            h("a", { href: link(["graphs", route.graph ?? ""]) },
                `${operation.graph} `, h("bdi", null, value.graphName)), " / ",
            String(operation.index)),
        h(Heading, { title }, h(State, { state: stateOf(operation) }),
            h(OperationActions, { value })),
        h(Sentence, { value }),
        error ? h(Missing, { error }) : null,
        h(Explanation, { parts: own }),
        h(About, { value }),
        h(Attempts, { attempts: value.attempts }),
        h(LogSection, {
            parts: own, round: operation.round, hasBegun: operation.attempts > 0,
            isFinished: operation.state === "finished",
        }),
        h(Payloads, { value, parts: own }),
        h(Dependencies, { value }));
}

/** @param {{value: Api.OperationDetail}} props */
function OperationActions({ value }) {
    const { operation, reasons, attempts } = value;
    const subject = operationSubject(operation);
    const last = attempts[attempts.length - 1];
    const isFinished = operation.state === "finished";
    // What a worker has already started can neither be held back nor be given another priority.
    const isWaiting = operation.state === "pending" || operation.state === "ready";
    const isSuspended = reasons.some(({ code }) => code === "operationSuspended");
    const isExternal = operation.kind === "external" && operation.state === "executing";
    const canRetry = isFinished && operation.outcome !== "succeeded";
    const cancel = isFinished ? null : h(Button, {
        name: "cancel", isDangerous: true, onClick: () => askCancel(subject),
    }, "Cancel");
    const submittedBy = live.use().progress?.graph.submittedBy;
    return h(Actions, { label: "Actions on the operation", cancel, submittedBy },
        isExternal && last
            ? h(Button, { name: "complete", onClick: () => askComplete(operation, last.id) },
                "Complete")
            : null,
        !isWaiting ? null : isSuspended
            ? h(Button, { name: "resume", onClick: () => resume(subject) }, "Resume")
            : h(Button, { name: "suspend", onClick: () => askSuspend(subject) }, "Suspend"),
        isWaiting
            ? h(Button, { name: "priority", onClick: () => askPriority(operation) }, "Priority")
            : null,
        canRetry
            ? h(Button, { name: "retry", onClick: () => askRetryOperation(operation) }, "Retry")
            : null);
}

/** @param {{value: Api.OperationDetail}} props */
function Sentence({ value }) {
    const { operation, summary } = value;
    const text = detail(operation);
    const error = operation.error;
    return h("div", { class: "summary" },
        summary ? h("p", { class: "text" }, summary) : null,
        text ? h("p", { id: "detail", class: operation.outcome === "failed" ? "refused" : "" },
            text) : null,
        error?.payload ? h("pre", { id: "error-payload" }, error.payload) : null);
}

/** @param {{value: Api.OperationDetail}} props */
function About({ value }) {
    const { operation, command, retry } = value;
    return h(Section, { title: "About", id: "about" },
        h(Facts, { id: "operation-facts", facts: [
            ["Kind", operation.kind],
            ["Queue", h("a", { href: link(["queues", operation.queue]) },
                h("bdi", null, operation.queue))],
            ["Priority", operation.priority],
            ["Quality of service", value.qualityOfService],
            ["Timeout", value.timeout === undefined ? undefined : short(value.timeout)],
            ["Retry", retry && retryText(retry)],
            ["Round", operation.round > 0 && String(operation.round + 1)],
            ["Directory", command?.directory],
            ["Environment", command && command.environment.join(", ")],
            ["Error", operation.error && errorText(operation.error)],
            ["Finished", operation.finishedAt && h(Time, { at: operation.finishedAt })],
        ] }),
        command ? [h("h3", null, "Command"),
            h("pre", { id: "command", tabindex: 0, role: "region", "aria-label": "Command" },
                commandText(command.arguments))] : null);
}

/** @param {Api.RetryDetail} retry */
function retryText(retry) {
    return `up to ${plural(retry.limit, "more attempt")}, the first after ${short(retry.delay)}`;
}

/** @param {Api.OperationError} error */
function errorText(error) {
    return [error.code, error.type, error.detail].filter(Boolean).join(", ");
}

/**
 * The text of a shell command, or the arguments, quoted where it is necessary.
 * @param {string[]} list
 */
function commandText(list) {
    if (list.length === 3 && list[0] === "/bin/sh" && list[1] === "-c") return list[2];
    return list.map((text) => (/^[\w\-./:=@%+,]+$/.test(text) ? text
        : `'${text.replaceAll("'", "'\\''")}'`)).join(" ");
}

/** @type {Page.Column<Api.Attempt>[]} */
const attemptColumns = [
    { title: "Attempt", isNumber: true, cell: ({ number }) => String(number) },
    { title: "Worker", cell: ({ worker }) => h("bdi", null, worker || "none: external") },
    { title: "Granted", cell: ({ grantedAt }) => h(Time, { at: grantedAt }) },
    { title: "Started", cell: ({ startedAt }) => startedAt && h(Time, { at: startedAt }) },
    { title: "Ended", cell: ({ endedAt }) => endedAt && h(Time, { at: endedAt }) },
    { title: "Took", isNumber: true, cell: ({ startedAt, endedAt }) => (
        startedAt && h(Duration, { from: startedAt, to: endedAt })) },
    { title: "Ending", cell: ({ ending, startedAt }) => (
        h(State, { state: ending ?? (startedAt ? "executing" : "dispatched") })) },
    { title: "Error", isWide: true, cell: ({ error, isUpToDate }) => (
        error?.message ?? (isUpToDate ? "its files were up to date" : "")) },
];

/** @param {{attempts: Api.Attempt[]}} props */
function Attempts({ attempts }) {
    return h(Section, { title: "Attempts", id: "attempts-section" },
        table({ id: "attempts", caption: "Attempts", columns: attemptColumns, items: attempts,
            keyOf: ({ id }) => id, empty: "There has been no attempt yet." }));
}

/** @param {{value: Api.OperationDetail, parts: (string | number)[]}} props */
function Payloads({ value, parts }) {
    const { state, attempts } = value.operation;
    const version = `${state} ${attempts}`;
    return h(Section, { title: "Input and output", id: "payloads" },
        h(Payload, { parts: [...parts, "input"], title: "Input", id: "input", version,
            none: "It has no input of its own." }),
        h(Payload, { parts: [...parts, "output"], title: "Output", id: "output", version,
            none: "It has left no output." }));
}

/** @param {{value: Api.OperationDetail}} props */
function Dependencies({ value }) {
    const { graph } = value.operation;
    /** @type {Page.Column<Api.Dependency>[]} */
    const columns = [
        { title: "Operation", isWide: true, cell: ({ operation }) => h(OperationLink, {
            operation, isWhole: operation.graph !== graph }) },
        { title: "Condition", cell: ({ condition }) => condition },
        { title: "State", cell: (dependency) => h(State, { state: stateOf(dependency) }) },
    ];
    const moreDependencies = value.dependencies.length - dependenciesMax;
    const more = value.moreDependents > 0 ? `and ${value.moreDependents} more` : null;
    return h("div", null,
        h(Section, { title: "Depends on", id: "dependencies-section" },
            table({ id: "dependencies", caption: "Depends on", columns,
                items: value.dependencies.slice(0, dependenciesMax),
                keyOf: ({ operation }) => `${operation.graph}/${operation.index}`,
                empty: "It depends on no operation." }),
            moreDependencies > 0
                ? h("p", { class: "soft", id: "more-dependencies" },
                    `and ${moreDependencies} more. To see all: operon show `
                    + `${graph}/@${value.operation.index}`)
                : null),
        h(Section, { title: "Needed by", id: "dependents-section" },
            value.dependents.length === 0
                ? h("p", { class: "empty" }, "No operation depends on it.")
                : h("ul", { id: "dependents", class: "names" },
                    value.dependents.map((operation) => (
                        h("li", { key: `${operation.graph}/${operation.index}` },
                            h(OperationLink, {
                                operation, isWhole: operation.graph !== graph })))),
                more ? h("li", { class: "soft" }, more) : null)));
}
