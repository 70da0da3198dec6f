// Who the reader is, and whether the page may ask and act.

import { get, onLoginNeeded, request } from "./api.js";
import { setClock } from "./format.js";
import { allow } from "./live.js";
import { observable } from "./observable.js";
import { address } from "./routes.js";

/** What the coordinator said; `undefined` until it has answered for the first time. */
export const session = observable(/** @type {Api.Session | undefined} */ (undefined));

/** Whether there was a login that no longer holds: the page stays under the new one. */
export const isExpired = observable(false);

/** Whether the reader may read. */
export function mayRead() {
    const value = session.get();
    return value !== undefined && (!value.needsToken || value.scope !== undefined);
}

/** Whether the reader may act, in a component. */
export function useMayAct() {
    const value = session.use();
    return value !== undefined && (!value.needsToken || value.scope === "operate");
}

/**
 * Whether the reader may cancel a graph and its operations, in a component. Who may only submit may
 * cancel what a token of the same name has submitted.
 * @param {string | undefined} submittedBy the name of that token
 */
export function useMayCancel(submittedBy) {
    const mayAct = useMayAct();
    const value = session.use();
    return mayAct
        || (value?.role === "submit" && value.name !== undefined && value.name === submittedBy);
}

/**
 * @param {Api.Session} value
 * @param {boolean} [hasExpired]
 */
function take(value, hasExpired = false) {
    isExpired.set(hasExpired);
    session.set(value);
    allow(mayRead());
    // The clock is needed for durations on the views of graphs, whose stream does not have it.
    if (mayRead()) {
        get(address(["status"])).then((status) => setClock(status.now), () => {});
    }
}

onLoginNeeded(() => {
    const value = session.get();
    if (value?.needsToken && value.scope === undefined) return;
    take({ needsToken: true }, value !== undefined);
});

/** Asks the coordinator who the reader is, until it answers. */
export async function start() {
    const code = /^#code=(.+)$/.exec(location.hash)?.[1];
    if (code) history.replaceState(null, "", "#/graphs");
    for (let pause = 500; ; pause = Math.min(5000, pause * 2)) {
        try {
            if (code) await logIn({ code: decodeURIComponent(code) }).catch(() => {});
            if (!mayRead()) take(await get(address(["session"])));
            return;
        } catch {
            session.set(undefined);
            await new Promise((resolve) => setTimeout(resolve, pause));
        }
    }
}

/**
 * Logs in with a token or with a one-time code.
 * @param {{token: string} | {code: string}} secret
 */
export async function logIn(secret) {
    const response = await request("POST", address(["session"]), { body: secret });
    take(await response.json());
}

export async function logOut() {
    await request("DELETE", address(["session"]));
    take({ needsToken: true });
}
