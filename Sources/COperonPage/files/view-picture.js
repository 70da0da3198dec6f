// The picture of a graph: what depends on what, coloured by state as it happens.

import { Camera } from "./camera.js";
import { Button, Filters } from "./controls.js";
import { plural, states } from "./format.js";
import { GraphFrame } from "./graph-frame.js";
import { arrowPaths, boxNode } from "./picture-drawing.js";
import { useResource } from "./resource.js";
import { address, link } from "./routes.js";
import { Missing, State } from "./ui.js";
import { h, useEffect, useMemo, useRef, useState } from "./preact.js";

/** @param {{route: Page.Route}} props */
export function PictureView({ route }) {
    return h(GraphFrame, { route, children: () => h(Picture, { graph: route.graph ?? "" }) });
}

/** @param {{graph: string}} props */
function Picture({ graph }) {
    const [again, setAgain] = useState(0);
    const parts = ["graphs", graph, "picture"];
    /** @type {import("./resource.js").Resource<Api.Picture>} */
    const { value: picture, error } = useResource(address(parts), { isFixed: true, again });
    /** @type {import("./resource.js").Resource<Api.PictureStates>} */
    const { value: now } = useResource(address(parts, { states: "true" }), { rest: 20 });
    const isOutdated = picture && now && picture.operations !== now.operations;
    useEffect(() => {
        // Operations were added, so the boxes are others.
        if (isOutdated) setAgain((count) => count + 1);
    }, [isOutdated, now?.operations]);
    if (!picture) return h(Missing, { error });
    if (picture.boxes.length === 0) {
        return h("p", { class: "empty" }, "The graph has no operations yet.");
    }
    const isSame = now?.states.length === picture.boxes.length && !isOutdated;
    return h(Drawing, { graph, picture, now: isSame ? now?.states : undefined });
}

/** @param {{graph: string, picture: Api.Picture, now?: Api.SomeCounts[]}} props */
function Drawing({ graph, picture, now }) {
    const svg = useRef(/** @type {SVGSVGElement | null} */ (null));
    const camera = useRef(/** @type {Camera | null} */ (null));
    const [text, setText] = useState("");
    const [here, setHere] = useState(-1);
    const found = useMemo(() => matches(picture.boxes, text), [picture, text]);
    useEffect(() => {
        const element = /** @type {SVGSVGElement} */ (svg.current);
        const own = new Camera(element);
        camera.current = own;
        return () => own.end();
    }, []);
    useEffect(() => {
        const own = /** @type {Camera} */ (camera.current);
        const isFirst = own.size.width === 1;
        own.size = { width: picture.width, height: picture.height };
        if (isFirst || own.isFitted) own.fit();
    }, [picture]);
    const show = (/** @type {number} */ number) => {
        const box = picture.boxes[number];
        setHere(number);
        camera.current?.center(box.x + box.width / 2, box.y + box.height / 2);
    };
    const next = () => {
        if (found.length > 0) show(found[(found.indexOf(here) + 1) % found.length]);
    };
    return h("div", { id: "picture-place" },
        h(Tools, { graph, camera, text, next, count: found.length, onText: (value) => {
            setText(value);
            setHere(-1);
            const [first] = matches(picture.boxes, value);
            if (first !== undefined) show(first);
        } }),
        h("p", { class: "soft", id: "picture-summary" }, summary(picture)),
        h("svg", {
            id: "picture", class: "picture", ref: svg, tabindex: 0, role: "group",
            "aria-label": `Picture of the graph: ${summary(picture)}`,
            style: { height: `min(70vh, ${Math.max(240, Math.ceil(picture.height) + 60)}px)` },
            onFocusin: (/** @type {FocusEvent} */ event) => {
                const element = /** @type {Element} */ (event.target);
                const box = picture.boxes[Number(element.getAttribute("data-box") ?? -1)];
                const own = camera.current;
                if (!box || !own || own.sees(box) || !element.matches(":focus-visible")) return;
                own.center(box.x + box.width / 2, box.y + box.height / 2);
            },
        },
        h(Arrows, { picture }), h(Boxes, { graph, picture, now, found, here })),
        h(Legend, null));
}

/** @param {Api.Picture} picture */
function summary({ operations, boxes, left }) {
    const parts = [`${plural(operations, "operation")} in ${plural(boxes.length, "box", "boxes")}`];
    if (left > 0) parts.push(`${plural(left, "more arrow")} left out`);
    return parts.join("; ");
}

/**
 * The numbers of the boxes whose titles contain a text.
 * @param {Api.PictureBox[]} boxes
 * @param {string} text
 */
function matches(boxes, text) {
    const small = text.toLowerCase();
    if (small === "") return [];
    return boxes.flatMap(({ title }, number) => (
        title.toLowerCase().includes(small) ? [number] : []));
}

/**
 * @param {{graph: string, camera: {current: Camera | null}, text: string, count: number,
 *     next: () => void, onText: (text: string) => void}} props
 */
function Tools({ graph, camera, text, count, next, onText }) {
    return h("div", { class: "tools-line" },
        h(Filters, { label: "Boxes of the picture" },
            h("label", null, "Find", h("input", {
                type: "search", "data-filter": "first", "data-test": "picture-search",
                value: text, autocomplete: "off", spellcheck: false,
                onInput: (/** @type {Event} */ event) => {
                    onText(/** @type {HTMLInputElement} */ (event.currentTarget).value);
                },
                onKeyDown: (/** @type {KeyboardEvent} */ event) => {
                    if (event.key === "Enter") next();
                },
            }))),
        h("span", { role: "status", class: "soft", id: "picture-found" }, text === "" ? ""
            : count === 0 ? "No box has this in its title."
                : `${plural(count, "box", "boxes")}; Enter shows the next`),
        text !== "" && count === 0 ? h(Unboxed, { graph, name: text }) : null,
        h("div", { class: "actions", role: "group", "aria-label": "Zoom" },
            h(Button, { name: "zoom-in", label: "Zoom in",
                onClick: () => camera.current?.zoom(1.3) }, "+"),
            h(Button, { name: "zoom-out", label: "Zoom out",
                onClick: () => camera.current?.zoom(1 / 1.3) }, "−"),
            h(Button, { name: "zoom-all", onClick: () => camera.current?.fit() }, "Show all")));
}

/**
 * What is said of a text that no title has: an operation may have this name, within a box that
 * stands for several.
 * @param {{graph: string, name: string}} props
 */
function Unboxed({ graph, name }) {
    // No address has these in it, and numbers are no names.
    if (name === "." || name === ".." || name.startsWith("@")) return null;
    return h("span", { class: "soft" }, "If it is the name of an operation, ",
        h("a", { href: link(["graphs", graph, "operations", name]), id: "picture-operation" },
            "open it"), ".");
}

/** @param {{picture: Api.Picture}} props */
function Arrows({ picture }) {
    return useMemo(() => {
        const paths = (/** @type {boolean} */ isCritical) => {
            const arrows = picture.arrows.filter((arrow) => arrow.isCritical === isCritical);
            const kind = isCritical ? "critical-" : "";
            return arrowPaths(arrows).map(({ lines, heads }, number) => h("g", { key: number },
                h("path", { class: `${kind}arrows`, d: lines }),
                h("path", { class: `${kind}heads`, d: heads })));
        };
        return h("g", { "aria-hidden": "true" }, h("g", null, paths(false)),
            h("g", null, paths(true)));
    }, [picture]);
}

/**
 * @param {{graph: string, picture: Api.Picture, now?: Api.SomeCounts[], found: number[],
 *     here: number}} props
 */
function Boxes({ graph, picture, now, found, here }) {
    // A box that has not changed is the same node as before, so that it is not even compared.
    const drawn = useRef(/** @type {{key: string, node: any}[]} */ ([]));
    const last = useRef(picture);
    if (last.current !== picture) drawn.current = [];
    last.current = picture;
    const isFound = new Set(found);
    const nodes = picture.boxes.map((box, number) => {
        const states_ = now?.[number] ?? box.states;
        const how = { number, isFound: isFound.has(number), isHere: number === here };
        const key = `${JSON.stringify(states_)} ${how.isFound} ${how.isHere}`;
        const known = drawn.current[number];
        if (known?.key === key) return known.node;
        const node = boxNode({ ...box, states: states_ }, graph, how);
        drawn.current[number] = { key, node };
        return node;
    });
    return h("g", null, nodes);
}

function Legend() {
    return h("ul", { class: "legend", "aria-label": "Legend" },
        states.map((state) => h("li", { key: state }, h(State, { state }))),
        h("li", null, h("svg", { class: "line", viewBox: "0 0 28 10", "aria-hidden": "true" },
            h("path", { class: "critical-arrows", d: "M0 5H28" })),
        "thick: critical path, the longest chain of operations"),
        h("li", { class: "soft" }, "A box with × stands for several operations; "
            + "its bar shows their states."));
}
