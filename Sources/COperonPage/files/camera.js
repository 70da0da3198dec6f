// Which part of a large drawing is seen: pan and zoom by wheel, fingers, mouse and keys.

/** Pixels of a drag that a click may have. */
const slack = 4;
/** How far it can be zoomed in, and below which scale texts are too small to be read. */
const [largest, readable] = [3, 0.45];

/** Shows a part of an SVG element. The part is kept here, so that moving draws nothing again. */
export class Camera {
    /** @param {SVGSVGElement} svg */
    constructor(svg) {
        this.svg = svg;
        /** The drawing. */
        this.size = { width: 1, height: 1 };
        /** Its point in the upper left corner, and pixels for each of its units. */
        this.view = { x: 0, y: 0, scale: 1 };
        /** @type {Map<number, {x: number, y: number}>} */
        this.pointers = new Map();
        this.moved = 0;
        this.frame = 0;
        /** Whether everything is shown, and stays so when the window changes. */
        this.isFitted = false;
        this.stop = new AbortController();
        this.resizing = new ResizeObserver(() => (this.isFitted ? this.fit() : this.draw()));
        this.listen();
    }

    listen() {
        const { svg } = this;
        const { signal } = this.stop;
        svg.addEventListener("wheel", (event) => this.wheel(event), { signal, passive: false });
        svg.addEventListener("pointerdown", (event) => this.down(event), { signal });
        svg.addEventListener("pointermove", (event) => this.move(event), { signal });
        svg.addEventListener("pointerup", (event) => this.up(event), { signal });
        svg.addEventListener("pointercancel", (event) => this.up(event), { signal });
        svg.addEventListener("keydown", (event) => this.key(event), { signal });
        // The end of a drag is no click on the box under it.
        svg.addEventListener("click", (event) => {
            if (this.moved > slack) event.preventDefault();
        }, { signal, capture: true });
        svg.addEventListener("dragstart", (event) => event.preventDefault(), { signal });
        this.resizing.observe(svg);
    }

    /** Takes away all listeners. */
    end() {
        this.stop.abort();
        this.resizing.disconnect();
        cancelAnimationFrame(this.frame);
    }

    /** Shows what was set, with the next frame of the screen. */
    draw() {
        if (this.frame) return;
        this.frame = requestAnimationFrame(() => {
            this.frame = 0;
            const { x, y, scale } = this.view;
            const { clientWidth, clientHeight } = this.svg;
            if (clientWidth === 0 || clientHeight === 0) return;
            const box = [x, y, clientWidth / scale, clientHeight / scale];
            this.svg.setAttribute("viewBox", box.map((part) => part.toFixed(2)).join(" "));
            this.svg.classList.toggle("far", scale < readable);
        });
    }

    /** The scale at which everything is seen. */
    get smallest() {
        const { clientWidth, clientHeight } = this.svg;
        return Math.min(1, clientWidth / this.size.width, clientHeight / this.size.height);
    }

    /** Shows everything. */
    fit() {
        this.isFitted = true;
        const scale = this.smallest;
        const { clientWidth, clientHeight } = this.svg;
        // It is not laid out yet: once it is, it is shown as a whole again.
        if (clientWidth === 0 || clientHeight === 0) return;
        this.view = {
            scale,
            x: (this.size.width - clientWidth / scale) / 2,
            y: (this.size.height - clientHeight / scale) / 2,
        };
        this.draw();
    }

    /**
     * @param {number} factor above 1: larger
     * @param {number} [x] the pixel that stays where it is; missing: the middle
     * @param {number} [y]
     */
    zoom(factor, x = this.svg.clientWidth / 2, y = this.svg.clientHeight / 2) {
        const { view } = this;
        this.isFitted = false;
        const least = Math.min(this.smallest, 1) / 2;
        const scale = Math.min(largest, Math.max(least, view.scale * factor));
        view.x += x / view.scale - x / scale;
        view.y += y / view.scale - y / scale;
        view.scale = scale;
        this.draw();
    }

    /**
     * Moves by pixels; some part of the drawing always stays in view.
     * @param {number} right
     * @param {number} down
     */
    pan(right, down) {
        const { view, size } = this;
        this.isFitted = false;
        const { clientWidth, clientHeight } = this.svg;
        const edge = 40 / view.scale;
        view.x = between(view.x + right / view.scale, edge - clientWidth / view.scale,
            size.width - edge);
        view.y = between(view.y + down / view.scale, edge - clientHeight / view.scale,
            size.height - edge);
        this.draw();
    }

    /**
     * Shows a point of the drawing in the middle, large enough to be read.
     * @param {number} x
     * @param {number} y
     */
    center(x, y) {
        this.isFitted = false;
        const scale = Math.max(this.view.scale, 0.8);
        const { clientWidth, clientHeight } = this.svg;
        this.view = { scale, x: x - clientWidth / scale / 2, y: y - clientHeight / scale / 2 };
        this.draw();
    }

    /**
     * Whether a part of the drawing is in view as a whole.
     * @param {{x: number, y: number, width: number, height: number}} box
     */
    sees(box) {
        const { x, y, scale } = this.view;
        return box.x >= x && box.y >= y && box.x + box.width <= x + this.svg.clientWidth / scale
            && box.y + box.height <= y + this.svg.clientHeight / scale;
    }

    /** @param {WheelEvent} event */
    wheel(event) {
        event.preventDefault();
        const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
        const change = between(-event.deltaY * lines, -300, 300);
        const { left, top } = this.svg.getBoundingClientRect();
        this.zoom(Math.exp(change / 400), event.clientX - left, event.clientY - top);
    }

    /** @param {PointerEvent} event */
    down(event) {
        if (event.pointerType === "mouse" && event.button !== 0) return;
        if (this.pointers.size === 0) this.moved = 0;
        this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    }

    /** @param {PointerEvent} event */
    move(event) {
        const last = this.pointers.get(event.pointerId);
        if (!last) return;
        const { x, y } = last;
        const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
        [last.x, last.y] = [event.clientX, event.clientY];
        this.moved += Math.abs(last.x - x) + Math.abs(last.y - y);
        if (this.moved <= slack) return;
        // Only a drag takes the pointer: a click must reach the box.
        if (!this.svg.hasPointerCapture(event.pointerId)) {
            this.svg.setPointerCapture(event.pointerId);
            this.svg.classList.add("dragged");
        }
        if (others.length === 0) {
            this.pan(x - last.x, y - last.y);
        } else {
            const other = others[0][1];
            const before = Math.hypot(x - other.x, y - other.y);
            const after = Math.hypot(last.x - other.x, last.y - other.y);
            const { left, top } = this.svg.getBoundingClientRect();
            if (before > 0) {
                this.zoom(after / before, (last.x + other.x) / 2 - left,
                    (last.y + other.y) / 2 - top);
            }
            this.pan((x - last.x) / 2, (y - last.y) / 2);
        }
    }

    /** @param {PointerEvent} event */
    up(event) {
        this.pointers.delete(event.pointerId);
        this.svg.classList.remove("dragged");
    }

    /** @param {KeyboardEvent} event */
    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const step = 60;
        /** @type {Record<string, () => void>} */
        const keys = {
            "+": () => this.zoom(1.3), "=": () => this.zoom(1.3), "-": () => this.zoom(1 / 1.3),
            0: () => this.fit(),
            ArrowLeft: () => this.pan(-step, 0), ArrowRight: () => this.pan(step, 0),
            ArrowUp: () => this.pan(0, -step), ArrowDown: () => this.pan(0, step),
        };
        const act = keys[event.key];
        if (!act) return;
        event.preventDefault();
        act();
    }
}

/**
 * @param {number} value
 * @param {number} least
 * @param {number} most
 */
function between(value, least, most) {
    return Math.min(Math.max(value, Math.min(least, most)), Math.max(least, most));
}
