// The addresses of the page: routes are in the fragment, so that links can be sent.

/**
 * One part of an address, encoded as a whole.
 * @param {string | number} part
 */
function encoded(part) {
    return encodeURIComponent(String(part));
}

/**
 * A link into the page: `link(["graphs", 3])` is `#/graphs/3`. Empty values of the query are left
 * out.
 * @param {(string | number)[]} parts
 * @param {Record<string, string | number | undefined>} [query]
 */
export function link(parts, query = {}) {
    const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
    const text = set.map(([name, value]) => `${encoded(name)}=${encoded(value ?? "")}`).join("&");
    return "#/" + parts.map(encoded).join("/") + (text ? "?" + text : "");
}

/**
 * An address of the API. A part cannot be `.` or `..`, because browsers remove these.
 * @param {(string | number)[]} parts
 * @param {Record<string, string | number | undefined>} [query]
 */
export function address(parts, query = {}) {
    if (parts.includes(".") || parts.includes("..")) {
        throw new Error("Browsers cannot ask for an object that is named “.” or “..”.");
    }
    return "/v1/" + link(parts, query).slice(2);
}

/**
 * What stands for an operation in an address: its name, or `@7` if a name would be misread.
 * @param {{name: string, index: number}} operation
 */
export function operationPart({ name, index }) {
    // Where only the name is known, the number is -1.
    const isOdd = /^(@.*|\.{0,2})$/s.test(name) || name.length > 1000;
    return isOdd && index >= 0 ? `@${index}` : name;
}

/**
 * A link to an operation.
 * @param {{graph: number | string, name: string, index: number}} operation
 */
export function operationLink(operation) {
    return link(["graphs", operation.graph, "operations", operationPart(operation)]);
}

/** @param {string} part */
function decoded(part) {
    try {
        return decodeURIComponent(part);
    } catch {
        return part; // somebody typed a stray percent sign
    }
}

/** @param {string} text @returns {Record<string, string>} */
function parsedQuery(text) {
    /** @type {Record<string, string>} */
    const query = {};
    for (const pair of text.split("&").filter(Boolean)) {
        const [name, value = ""] = pair.split("=");
        query[decoded(name)] = decoded(value);
    }
    return query;
}

/**
 * What an address shows.
 * @param {string} fragment with or without `#`
 * @returns {Page.Route}
 */
export function parseRoute(fragment) {
    const text = fragment.replace(/^#?\/?/, "");
    const mark = text.indexOf("?");
    const query = mark < 0 ? {} : parsedQuery(text.slice(mark + 1));
    const path = mark < 0 ? text : text.slice(0, mark);
    const [view = "", name, part, operation, ...rest] = path.split("/").map(decoded);
    if (rest.length > 0) return { view: "unknown", query };
    if (view === "") return { view: "graphs", query };
    if (view === "graphs") return graphRoute(name, part, operation, query);
    if (part !== undefined) return { view: "unknown", query };
    if (name && view === "queues") return { view: "queue", name, query };
    if (name && view === "triggers") return { view: "trigger", name, query };
    if (!name && (view === "queues" || view === "workers" || view === "triggers"
        || view === "cluster")) return { view, query };
    return { view: "unknown", query };
}

/**
 * @param {string | undefined} graph
 * @param {string | undefined} part
 * @param {string | undefined} operation
 * @param {Record<string, string>} query
 * @returns {Page.Route}
 */
function graphRoute(graph, part, operation, query) {
    if (!graph) return { view: "graphs", query };
    if (!part) return { view: "graph", graph, query };
    if (part === "operations" && operation) return { view: "operation", graph, operation, query };
    if (operation) return { view: "unknown", query };
    if (part === "operations" || part === "picture" || part === "timeline") {
        return { view: part, graph, query };
    }
    return { view: "unknown", query };
}

/**
 * Goes to another address.
 * @param {string} target from `link`
 */
export function go(target) {
    location.hash = target;
}

/**
 * Changes the filters of the address, without a new entry in the browser's history.
 * @param {string} target from `link`
 */
export function replaceAddress(target) {
    history.replaceState(null, "", target);
    window.dispatchEvent(new Event("hashchange"));
}
