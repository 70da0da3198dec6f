// Requests to the coordinator. Every request of the page goes through `request`.

import { address } from "./routes.js";

/** An answer that is an error. */
export class ApiError extends Error {
    /**
     * @param {string} message the sentence to show
     * @param {number} status 0: the coordinator did not answer
     * @param {string} code
     */
    constructor(message, status, code) {
        super(message);
        this.status = status;
        this.code = code;
    }
}

/** A body that is JSON already: what a person wrote is sent as it is, large numbers included. */
export class JsonText {
    /** @param {string} text */
    constructor(text) {
        this.text = text;
    }
}

/** Called when an answer says that a login is needed. */
let loginNeeded = () => {};

/** @param {() => void} callback */
export function onLoginNeeded(callback) {
    loginNeeded = callback;
}

/**
 * Sends a request.
 * @param {string} method
 * @param {string} url from `address`
 * @param {{body?: unknown, signal?: AbortSignal, headers?: Record<string, string>}} [options]
 * @returns {Promise<Response>} an answer that is no error
 */
export async function request(method, url, options = {}) {
    const { body, signal } = options;
    /** @type {Record<string, string>} */
    const headers = { ...options.headers };
    // Pages of other sites cannot set this header, so a request with it comes from this page.
    if (method !== "GET") headers["Operon-Page"] = "1";
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let response;
    try {
        const text = body instanceof JsonText ? body.text
            : body === undefined ? undefined : JSON.stringify(body);
        response = await fetch(url, { method, headers, body: text, signal, cache: "no-store" });
    } catch (error) {
        if (signal?.aborted) throw error;
        throw new ApiError("The coordinator does not answer.", 0, "unreachable");
    }
    if (!response.ok) throw await problem(response, url);
    return response;
}

/**
 * @param {Response} response
 * @param {string} url
 */
async function problem(response, url) {
    // A wrong token at the login itself is an answer to the login, not a reason for another one.
    if (response.status === 401 && !url.endsWith("/v1/session")) loginNeeded();
    let detail = `The coordinator answered with status ${response.status}.`;
    let code = "internal";
    try {
        const value = await response.json();
        if (typeof value.detail === "string") detail = value.detail;
        if (typeof value.code === "string") code = value.code;
    } catch {
        // Something between the page and the coordinator answered: there is no sentence to show.
    }
    return new ApiError(detail, response.status, code);
}

/**
 * Gets a value.
 * @param {string} url from `address`
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function get(url, signal) {
    return (await request("GET", url, { signal })).json();
}

/**
 * Sends a command, and returns its answer.
 * @param {"POST" | "PUT" | "PATCH" | "DELETE"} method
 * @param {(string | number)[]} parts of the address
 * @param {unknown} [body]
 * @param {Record<string, string>} [headers]
 * @returns {Promise<any>}
 */
export async function send(method, parts, body, headers) {
    const response = await request(method, address(parts), { body, headers });
    return response.status === 204 ? undefined : response.json();
}

/**
 * A sentence for any error.
 * @param {unknown} error
 */
export function sentence(error) {
    return error instanceof Error ? error.message : String(error);
}
