// How fast a graph proceeds, and when it would be done at this pace.

import { finished, total } from "./format.js";
import { live } from "./live.js";

/** Seconds that the pace looks back. */
const span = 60;
/** Seconds and ends that it takes to speak of a pace at all. */
const [leastSeconds, leastEnds] = [10, 5];

/** @typedef {{at: number, done: number, total: number}} Sample `at` in seconds */

/** @type {{graph?: number, samples: Sample[]}} */
let history = { samples: [] };

live.subscribe(() => {
    const graph = live.get().progress?.graph;
    if (!graph) return;
    if (graph.id !== history.graph) history = { graph: graph.id, samples: [] };
    const { samples } = history;
    const { counts } = graph;
    const at = performance.now() / 1000;
    // What is skipped or cancelled took no time, and would make the rest look fast.
    samples.push({ at, done: counts.succeeded + counts.failed, total: total(counts) });
    // One sample before the span is kept, so that the span is covered.
    while (samples.length > 2 && samples[1].at < at - span) samples.shift();
    // At most four come in a second; this holds even if the coordinator sends more.
    if (samples.length > 2000) samples.splice(1, 1000);
});

/**
 * What can be said honestly of a graph.
 * @param {Api.Graph} graph
 * @returns {{perSecond: number, seconds: number, left?: number} | undefined} `seconds`: how long
 *     the pace was watched; `left`: the seconds until it is done at this pace
 */
export function paceOf(graph) {
    const { samples } = history;
    if (graph.id !== history.graph || samples.length < 2) return undefined;
    const now = performance.now() / 1000;
    const first = samples.find((sample) => sample.at >= now - span - 1) ?? samples[0];
    const last = samples[samples.length - 1];
    const seconds = now - first.at;
    const ends = last.done - first.done;
    if (seconds < leastSeconds || ends < leastEnds) return undefined;
    const perSecond = ends / seconds;
    // Whoever adds operations, or holds them back, makes the end a guess.
    const isSteady = graph.status === "running" && !graph.isOpen && first.total === last.total;
    const rest = total(graph.counts) - finished(graph.counts);
    return { perSecond, seconds, left: isSteady ? rest / perSecond : undefined };
}
