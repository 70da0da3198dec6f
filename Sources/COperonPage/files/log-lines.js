// The lines of a log, in bounded memory.

/** The most lines, and the most characters, that are kept. */
const [mostLines, mostCharacters] = [5000, 4_000_000];
/** The most characters of one line. */
const longestLine = 10_000;
/** Lines in a block. The page draws block by block, so that old blocks need no work. */
const blockLines = 100;

/** @typedef {{number: number, lines: string[], length: number}} Block */

/** What terminals do with it makes no sense here: colours, cursors, and all control characters. */
const control = new RegExp([
    "\\u001b\\[[0-?]*[ -/]*[@-~]",
    "\\u001b\\][^\\u0007\\u001b]*(?:\\u0007|\\u001b\\\\)",
    "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f]",
].join("|"), "g");

/** The begin of a sequence for a terminal whose end is in the next piece. */
const unfinished = /\u001b(?:\[[0-?]{0,100}[ -/]{0,10}|\][^\u0007\u001b\n]{0,1000}\u001b?)?$/;

/** Keeps the last lines of a log, and counts those that it leaves out. */
export class LogLines {
    constructor() {
        /** @type {Block[]} */
        this.blocks = [];
        /** Lines that are kept. */
        this.count = 0;
        /** Lines that were left out. */
        this.leftOut = 0;
        this.characters = 0;
        this.attempt = 0;
        /** Whether the last line has no end yet. */
        this.isOpen = false;
        /** The begin of a sequence that the next piece goes on with. */
        this.held = "";
    }

    /**
     * Takes the next piece.
     * @param {Api.Log} piece
     */
    add(piece) {
        if (piece.number !== this.attempt) {
            this.attempt = piece.number;
            this.isOpen = false;
            this.held = "";
            if (piece.number > 1) this.push(`— attempt ${piece.number} —`);
        }
        if (piece.missedBytes) {
            this.isOpen = false;
            this.held = "";
            this.push(`— ${piece.missedBytes} bytes are missing here —`);
        }
        const whole = this.held + piece.text;
        this.held = unfinished.exec(whole)?.[0] ?? "";
        const ended = whole.slice(0, whole.length - this.held.length);
        const lines = ended.split("\n");
        lines.forEach((text, place) => {
            const isLast = place === lines.length - 1;
            if (isLast && text === "") return;
            if (this.isOpen) this.extend(text);
            else this.push(text);
            this.isOpen = isLast;
        });
        if (ended.endsWith("\n")) this.isOpen = false;
        this.shorten();
    }

    /** @param {string} text */
    push(text) {
        let block = this.blocks[this.blocks.length - 1];
        if (!block || block.lines.length >= blockLines) {
            block = { number: (block?.number ?? 0) + 1, lines: [], length: 0 };
            this.blocks.push(block);
        }
        const line = cut(text.replace(control, ""));
        block.lines.push(line);
        block.length += line.length;
        this.characters += line.length;
        this.count += 1;
    }

    /**
     * Adds to the last line.
     * @param {string} text
     */
    extend(text) {
        const block = this.blocks[this.blocks.length - 1];
        const last = block.lines.length - 1;
        const before = block.lines[last].length;
        block.lines[last] = cut(block.lines[last] + text.replace(control, ""));
        block.length += block.lines[last].length - before;
        this.characters += block.lines[last].length - before;
    }

    /** Lets whole blocks go until the rest is short enough. */
    shorten() {
        while (this.blocks.length > 1
            && (this.count - this.blocks[0].lines.length >= mostLines
                || this.characters > mostCharacters)) {
            const block = /** @type {Block} */ (this.blocks.shift());
            this.count -= block.lines.length;
            this.leftOut += block.lines.length;
            this.characters -= block.length;
        }
    }
}

/** @param {string} line */
function cut(line) {
    if (line.length <= longestLine) return line;
    const end = " … (the rest of the line is left out)";
    return line.endsWith(end) ? line : line.slice(0, longestLine) + end;
}
