// The part of Preact that the page uses. tsconfig.json puts this file beside files/preact.js.

export interface VNode {
    key: unknown;
}

/** What an element can contain. */
export type Child = VNode | string | number | boolean | null | undefined | Child[];

export type Component<P> = (props: P) => VNode | null;

export type Ref<T> = { current: T };

export function h(type: () => VNode | null, props: { key?: string | number } | null): VNode;
export function h<P>(
    type: Component<P>,
    props: P & { key?: string | number },
    ...children: Child[]
): VNode;
export function h(type: string, props: Record<string, any> | null, ...children: Child[]): VNode;

export function render(node: VNode | null, parent: Element): void;

export const Fragment: Component<{}>;

export function useState<T>(
    initial: T | (() => T),
): [T, (next: T | ((previous: T) => T)) => void];
export function useEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useRef<T>(initial: T): Ref<T>;
export function useMemo<T>(make: () => T, inputs: unknown[]): T;
export function useCallback<T extends Function>(callback: T, inputs: unknown[]): T;
