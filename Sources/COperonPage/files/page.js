// The page: it chooses the view by the address, and has around it what all views share.

import { sentence } from "./api.js";
import { HelpDialog, LoginDialog, QuestionDialog } from "./dialogs.js";
import { live, watch } from "./live.js";
import { isHelpOpen, notice, notify, question } from "./notices.js";
import { link, parseRoute } from "./routes.js";
import { isExpired, logOut, mayRead, session, start } from "./session.js";
import { ClusterView } from "./view-cluster.js";
import { GraphView, OperationsView } from "./view-graph.js";
import { GraphsView } from "./view-graphs.js";
import { OperationView } from "./view-operation.js";
import { PictureView } from "./view-picture.js";
import { QueueView, QueuesView } from "./view-queues.js";
import { TimelineView } from "./view-timeline.js";
import { TriggerView, TriggersView } from "./view-triggers.js";
import { WorkersView } from "./view-workers.js";
import { Heading } from "./ui.js";
import { h, render, useEffect, useState } from "./preact.js";

/** @type {Record<Page.Route["view"], import("../preact").Component<{route: Page.Route}>>} */
const views = {
    graphs: GraphsView,
    graph: GraphView,
    operations: OperationsView,
    picture: PictureView,
    timeline: TimelineView,
    operation: OperationView,
    queues: QueuesView,
    queue: QueueView,
    workers: WorkersView,
    triggers: TriggersView,
    trigger: TriggerView,
    cluster: ClusterView,
    unknown: UnknownView,
};

/** @type {[string, string, string][]} */
const navigation = [
    ["graphs", "Graphs", "graphs graph operations picture timeline operation"],
    ["queues", "Queues and keys", "queues queue"],
    ["workers", "Workers", "workers"],
    ["triggers", "Triggers", "triggers trigger"],
    ["cluster", "Cluster", "cluster"],
];

function UnknownView() {
    return h("div", null, h(Heading, { title: "Nothing here" }),
        h("p", null, "This address shows nothing. ",
            h("a", { href: link(["graphs"]) }, "Go to the graphs")));
}

/** The route of the address. It is replaced when the address changes. */
function useRoute() {
    const [route, setRoute] = useState(() => parseRoute(location.hash));
    useEffect(() => {
        const take = () => setRoute(parseRoute(location.hash));
        window.addEventListener("hashchange", take);
        return () => window.removeEventListener("hashchange", take);
    }, []);
    return route;
}

/** What tells two views apart: another one begins afresh, another filter does not. */
function keyOf(/** @type {Page.Route} */ { view, graph, operation, name }) {
    return [view, graph, operation, name].map((part) => encodeURIComponent(part ?? "")).join("/");
}

function App() {
    const route = useRoute();
    const known = session.use();
    useEffect(() => watch(route.graph), [route.graph]);
    const hasExpired = isExpired.use();
    const needsLogin = known !== undefined && !mayRead();
    return h("div", { class: "app" },
        h("a", { class: "skip", href: "#main", onClick: skip }, "Skip to the content"),
        h(Header, { route, known }),
        h(Banner, { isStarting: known === undefined }),
        h("main", { id: "main", tabindex: -1 },
            known === undefined || (needsLogin && !hasExpired)
                ? h("h1", null, "Operon")
                : h(View, { key: keyOf(route), route })),
        h(NoticeLine, null),
        needsLogin ? h(LoginDialog, null) : h(QuestionDialog, null),
        h(HelpDialog, null));
}

/** The fragment is the route, so the link to the content cannot use it. */
function skip(/** @type {Event} */ event) {
    event.preventDefault();
    document.getElementById("main")?.focus();
}

/** @param {{route: Page.Route}} props */
function View({ route }) {
    return h(views[route.view], { route });
}

/** @param {{route: Page.Route, known?: Api.Session}} props */
function Header({ route, known }) {
    const leave = () => logOut().catch((error) => notify(sentence(error), true));
    return h("header", null,
        h("span", { class: "brand" }, "Operon"),
        h("nav", { "aria-label": "Views" }, navigation.map(([part, text, which]) => h("a", {
            key: part, href: link([part]), "data-test": `nav-${part}`,
            "aria-current": which.split(" ").includes(route.view) ? "page" : undefined,
        }, text))),
        h("span", { class: "tools" },
            known?.needsToken && known.scope
                ? h("span", { class: "soft", id: "who" }, known.name ?? "",
                    known.role === "submit" ? " (may only submit)"
                        : known.scope === "read" ? " (may only read)" : "")
                : null,
            h("button", {
                type: "button", "data-test": "keys", "aria-label": "Keys",
                onClick: () => isHelpOpen.set(true),
            }, "?"),
            known?.needsToken && known.scope
                ? h("button", { type: "button", "data-test": "logout", onClick: leave }, "Log out")
                : null));
}

/** @param {{isStarting: boolean}} props */
function Banner({ isStarting }) {
    const { isLost, problem } = live.use();
    const [isLate, setLate] = useState(false);
    useEffect(() => {
        // The first answer usually comes before anybody could read a banner.
        const timer = setTimeout(() => setLate(isStarting), 1000);
        if (!isStarting) setLate(false);
        return () => clearTimeout(timer);
    }, [isStarting]);
    const text = isLost || (isStarting && isLate)
        ? "The coordinator does not answer. Trying again…" : problem;
    return h("div", { class: "banner-place", role: "status", id: "connection" },
        text ? h("p", { class: "banner", id: "banner" }, text) : null);
}

/** What was done last. It stays until the reader takes it away or something else is done. */
function NoticeLine() {
    const value = notice.use();
    return h("div", { class: "notice-place" },
        h("div", { role: "status", id: "status" }, value && !value.isError
            ? h("p", { class: "notice", key: value.number }, value.text) : null),
        h("div", { role: "alert", id: "refusal" }, value?.isError
            ? h("p", { class: "notice refused", key: value.number }, value.text) : null),
        value ? h("button", {
            type: "button", "data-test": "dismiss", onClick: () => notice.set(undefined),
        }, "Dismiss") : null);
}

// A question belongs to the view that asked it.
window.addEventListener("hashchange", () => question.set(undefined));

// The element has a line for readers without scripts, which goes away.
const place = /** @type {HTMLElement} */ (document.getElementById("page"));
place.replaceChildren();
// A one-time code leaves the address before the address is read as a route.
void start();
render(h(App, null), place);
