// The types that modules share. Those of the API are in schemas.d.ts.

/** What an address of the page shows. */
declare namespace Page {
    interface Route {
        /** The name of the view. */
        view:
            | "graphs" | "graph" | "operations" | "picture" | "timeline" | "operation"
            | "queues" | "queue" | "workers" | "triggers" | "trigger" | "cluster" | "unknown";
        /** What the view shows: names of a graph, an operation, a queue or a trigger. */
        graph?: string;
        operation?: string;
        name?: string;
        /** Filters and pages. */
        query: Record<string, string>;
    }

    /** A column of a table. */
    interface Column<T> {
        title: string;
        cell: (item: T) => import("./preact").Child;
        isNumber?: boolean;
        isWide?: boolean;
    }

    /** A field of a dialog. */
    interface Field {
        name: string;
        label: string;
        kind?: "text" | "number" | "select" | "check" | "area";
        value?: string;
        hint?: string;
        options?: { value: string; label: string }[];
        min?: number;
        isRequired?: boolean;
        /** The field is shown only while this other field has this value. */
        onlyIf?: [string, string];
    }

    /** A question that a dialog asks before something is done. */
    interface Question {
        id: string;
        title: string;
        text?: string;
        fields?: Field[];
        submit: string;
        isDangerous?: boolean;
        /** Does it, and says in a sentence what was done. */
        act: (values: Record<string, string>) => Promise<string>;
    }
}
