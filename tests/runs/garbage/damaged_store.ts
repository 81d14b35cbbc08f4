import type { RowKind, Store } from "../../../engine/mod.ts";

/** A journal in which the rows of one kind have this value, in one run or in all. */
export function damagedStore(
  store: Store,
  { kind, value, run }: { kind: RowKind; value: string; run?: string },
): Store {
  const read: Store["read"] = async (id, query) =>
    (await store.read(id, query)).map((row) =>
      row.kind === kind && (run ?? id) === id ? { ...row, value } : row
    );
  return new Proxy(store, {
    get: (target, name) => {
      if (name === "read") return read;
      const member = Reflect.get(target, name) as unknown;
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
