/**
 * A list that arrives item by item. `order` places an item: [3] is the fourth, [3, 0] the first of
 * the fourth list.
 */

export type Order = readonly number[];
type ItemListener = { item(order: Order, value: unknown): void; end(error?: Error): void };

export class ItemStream {
  readonly #items: { order: Order; value: unknown }[] = [];
  readonly #listeners: ItemListener[] = [];
  #ended: { error?: Error } | undefined;

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  push(order: Order, value: unknown): void {
    if (this.#ended) return;
    this.#items.push({ order, value });
    for (const listener of this.#listeners) listener.item(order, value);
  }

  /** No more items will come; with an error, the list will never be complete. */
  end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = { error };
    for (const listener of this.#listeners) listener.end(error);
  }

  /** Reports what has already arrived, then the rest as it comes. */
  subscribe(listener: ItemListener): void {
    for (const { order, value } of this.#items) listener.item(order, value);
    if (this.#ended) listener.end(this.#ended.error);
    else this.#listeners.push(listener);
  }

  /** All values, in order. */
  list(): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      this.subscribe({
        item() {},
        end: (error) => error ? reject(error) : resolve(inOrder(this.#items)),
      });
    });
  }

  /** The stream of a list that arrives complete. */
  static of(list: Promise<unknown>): ItemStream {
    const stream = new ItemStream();
    list.then((values) => {
      if (!Array.isArray(values)) {
        throw new TypeError(`Cannot map over a value that is not a list but ${typeof values}`);
      }
      values.forEach((value, place) => stream.push([place], value));
      stream.end();
    }).catch((error) => stream.end(error));
    return stream;
  }
}

/** Values sorted by their order. */
export function inOrder(items: readonly { order: Order; value: unknown }[]): unknown[] {
  return [...items].sort((a, b) => compare(a.order, b.order)).map(({ value }) => value);
}

function compare(a: Order, b: Order): number {
  for (let level = 0; level < Math.min(a.length, b.length); level++) {
    const difference = a[level]! - b[level]!;
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
