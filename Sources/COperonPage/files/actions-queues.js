// What a reader can do to queues, keys and triggers.

import { JsonText, send } from "./api.js";
import { checked, perform, priorityField } from "./actions.js";
import { localTime } from "./format.js";
import { touch } from "./live.js";
import { ask } from "./notices.js";

const burstHint = "How many may start at once after a pause; only with a rate.";

/** @param {Api.Queue} queue */
export function askQueueLimits(queue) {
    ask({
        id: "queue-limits-dialog",
        title: `Limits of queue “${queue.name}”`,
        text: "The limits apply in the whole cluster.",
        fields: [
            { name: "limit", label: "Operations at once", kind: "number", min: 0,
                value: String(queue.maxConcurrentOperationCount ?? ""),
                hint: "Empty: no limit. 0 lets nothing start." },
            { name: "rate", label: "Rate", value: queue.rate ?? "",
                hint: "How often operations may start: 10/s, 5/30s. Empty: no rate." },
            { name: "burst", label: "Burst", kind: "number", min: 1,
                value: queue.rate ? String(queue.burst ?? "") : "", hint: burstHint },
            priorityField(queue.priority),
        ],
        submit: "Set",
        act: async (values) => {
            await send("PATCH", ["queues", queue.name], queueChange(values, queue));
            touch();
            return `Set the limits of queue “${queue.name}”.`;
        },
    });
}

/**
 * Only what the reader has changed, so that a change that somebody else made meanwhile stays.
 * @param {Record<string, string>} values
 * @param {Api.Queue} queue
 * @returns {Api.QueueChange}
 */
function queueChange({ limit, rate, burst, priority }, queue) {
    /** @type {Api.QueueChange} */
    const change = {};
    if (limit !== String(queue.maxConcurrentOperationCount ?? "")) {
        if (limit === "") change.isUnlimited = true;
        else change.maxConcurrentOperationCount = Number(limit);
    }
    const hasNewBurst = burst !== "" && burst !== String(queue.burst ?? "");
    if (rate === "" && queue.rate) change.hasNoRate = true;
    if (rate !== "" && (rate !== queue.rate || hasNewBurst)) change.rate = rate;
    if (burst !== "" && (change.rate || hasNewBurst)) change.burst = Number(burst);
    if (priority !== queue.priority) {
        change.priority = /** @type {Api.Queue["priority"]} */ (priority);
    }
    return change;
}

/** @param {Api.Key} key */
export function askKeyLimits(key) {
    ask({
        id: "key-limits-dialog",
        title: `Limits of key “${key.name}”`,
        text: "As many running operations as the limit says can hold the key at a time.",
        fields: [
            { name: "limit", label: "Holders at once", kind: "number", min: 0, isRequired: true,
                value: String(key.limit) },
            { name: "rate", label: "Rate", value: key.rate ?? "",
                hint: "How often operations may start: 10/s, 5/30s. Empty: no rate." },
            { name: "burst", label: "Burst", kind: "number", min: 1,
                value: key.rate ? String(key.burst ?? "") : "", hint: burstHint },
        ],
        submit: "Set",
        act: async ({ limit, rate, burst }) => {
            /** @type {Api.KeyRequest} */
            const body = { limit: Number(limit) };
            if (rate) body.rate = rate;
            if (rate && burst) body.burst = Number(burst);
            await send("PUT", ["keys", key.name], body);
            touch();
            return `Set the limits of key “${key.name}”.`;
        },
    });
}

/** @param {Api.Trigger} trigger */
export function askFire(trigger) {
    ask({
        id: "fire-dialog",
        title: `Fire trigger “${trigger.name}”?`,
        text: `It submits the graph of ${trigger.graph}.`,
        fields: [{ name: "data", label: "Data", kind: "area",
            hint: "Optional JSON, for the graph." }],
        submit: "Fire",
        act: async ({ data }) => {
            const body = data.trim() === "" ? {}
                : new JsonText(`{"data": ${checked(data, "The data")}}`);
            const answer = await send("POST", ["triggers", trigger.name, "fire"], body);
            touch();
            return firedText(answer);
        },
    });
}

/** @param {Api.Firing} firing */
function firedText(firing) {
    const name = `“${firing.trigger}”`;
    if (firing.isRepeated) {
        return `This key has fired trigger ${name} before: firing ${firing.number}.`;
    }
    switch (firing.status) {
    case "skipped":
        return `Skipped: a run of trigger ${name} has not ended.`;
    case "waiting":
        return `Firing ${firing.number} of trigger ${name} waits.`;
    case "merged":
        return `Merged into firing ${firing.mergedInto} of trigger ${name}, which waits.`;
    default:
        return `Fired trigger ${name}: firing ${firing.number}.`;
    }
}

/** @param {Api.Trigger} trigger */
export function askSuspendTrigger(trigger) {
    ask({
        id: "suspend-dialog",
        title: `Suspend trigger “${trigger.name}”?`,
        text: "It does not fire until it is resumed.",
        fields: [{ name: "reason", label: "Reason", hint: "Optional; shown to others." }],
        submit: "Suspend",
        act: async ({ reason }) => {
            /** @type {Api.Trigger} */
            const answer = await send("POST", ["triggers", trigger.name, "suspend"],
                reason ? { reason } : {});
            touch();
            const until = answer.suspension?.until;
            return `Suspended trigger “${trigger.name}”`
                + `${until ? ` until ${localTime(until)}` : ""}.`;
        },
    });
}

/** @param {Api.Trigger} trigger */
export function resumeTrigger(trigger) {
    return perform(async () => {
        await send("POST", ["triggers", trigger.name, "resume"]);
        touch();
        return `Resumed trigger “${trigger.name}”.`;
    });
}
