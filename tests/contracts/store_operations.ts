/** Random operations on a store, as data, and what a store answers and holds after each. */
import * as fc from "fast-check";
import { EngineError } from "../../engine/errors.ts";
import type {
  FinalStatus,
  ReadQuery,
  RequestKind,
  RowKind,
  Store,
} from "../../engine/stores/store.ts";
import { newOwner, newRun, row } from "./store_rows.ts";

/** `late`: by how many epochs the caller is behind. */
type OfOwner = { run: string; late: number };
export type Operation =
  | { op: "create"; run: string; queue: string | null; priority: number; rows: number }
  | {
    op: "claim";
    run: string;
    owner: string;
    lease_ms: number;
    force: boolean;
    seen: number | null;
    ended: boolean;
  }
  | { op: "dequeue"; owner: string; lease_ms: number; pick: number | null; force: boolean }
  | OfOwner & { op: "renew"; lease_ms: number }
  | OfOwner & { op: "append"; keys: string[]; kind: RowKind }
  | OfOwner & { op: "remove"; seqs: number[] }
  | OfOwner & { op: "finish"; status: FinalStatus; error: string | undefined }
  | OfOwner & { op: "release" | "reopen" }
  | { op: "request"; run: string; kind: RequestKind }
  | { op: "signal"; run: string; name: string; value: string }
  | { op: "read"; run: string; query: ReadQuery }
  | { op: "advance"; ms: number };

const run = fc.constantFrom("a", "b", "c");
const owner = fc.constantFrom("one", "two", "three");
const late = fc.constantFrom(0, 0, 0, 0, 1);
const lease_ms = fc.constantFrom(0, 10_000, 1_000_000);
const key = fc.constantFrom(
  "x",
  "round/1/x",
  "round/1/y#1",
  "round/10/x",
  'a "quoted\\ key',
  "é漢🙂",
);
const kind = fc.constantFrom<RowKind>("result", "intent", "round", "signal", "note/version");
const force = fc.constantFrom(false, false, true);
const op = <T extends string>(name: T) => fc.constant(name);
const some = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

const OPERATION: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      op: op("create"),
      run,
      queue: fc.constantFrom(null, "q"),
      priority: fc.integer({ min: -2, max: 2 }),
      rows: fc.nat(2),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: op("claim"),
      run,
      owner,
      lease_ms,
      force,
      seen: fc.constantFrom(null, 0, 1),
      ended: fc.constantFrom(false, false, true),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: op("dequeue"),
      owner,
      lease_ms,
      force,
      pick: fc.constantFrom(null, 0, 1, 2),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      op: op("append"),
      run,
      late,
      keys: fc.array(key, { maxLength: 3 }),
      kind,
    }),
  },
  fc.record({ op: op("renew"), run, late, lease_ms }),
  fc.record({
    op: op("remove"),
    run,
    late,
    seqs: fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 3 }),
  }),
  fc.record({
    op: op("finish"),
    run,
    late,
    status: fc.constantFrom<FinalStatus>("done", "failed", "cancelled"),
    error: fc.constantFrom(undefined, '{"code":"x"}'),
  }),
  fc.record({ op: fc.constantFrom("release" as const, "reopen" as const), run, late }),
  fc.record({ op: op("request"), run, kind: fc.constantFrom<RequestKind>("cancel", "drain") }),
  fc.record({
    op: op("signal"),
    run,
    name: fc.constantFrom("go", "gone"),
    value: fc.constantFrom("1", "2"),
  }),
  fc.record({
    op: op("read"),
    run,
    query: fc.record({
      kinds: some(fc.array(kind, { maxLength: 2 })),
      prefix: some(fc.constantFrom("round/1", "round/1/", "é")),
      after_seq: some(fc.nat(5)),
      limit: some(fc.nat(3)),
      newest_first: fc.boolean(),
    }),
  }),
  fc.record({ op: op("advance"), ms: fc.constantFrom(1, 9_999, 10_000) }),
);

const BEGUN: Operation[] = [
  { op: "create", run: "a", queue: null, priority: 0, rows: 0 },
  { op: "claim", run: "a", owner: "one", lease_ms: 10_000, force: false, seen: null, ended: false },
  { op: "create", run: "b", queue: "q", priority: 1, rows: 2 },
];

export const OPERATIONS = fc.array(OPERATION, { minLength: 5, maxLength: 40 }).map((
  more,
) => [...BEGUN, ...more]);

/**
 * What the store answers: a value without times, or the code of its error. `prefix` keeps sequences
 * apart.
 */
export async function perform(
  store: Store,
  operation: Operation,
  prefix: string,
): Promise<unknown> {
  try {
    return withoutTimes(await call(store, operation, prefix));
  } catch (error) {
    if (error instanceof EngineError) return { error: error.code };
    throw error;
  }
}

async function call(store: Store, operation: Operation, prefix: string): Promise<unknown> {
  if (operation.op === "advance") return null;
  if (operation.op === "dequeue") {
    const { pick, force, lease_ms } = operation;
    return await store.dequeue(newOwner(operation.owner), {
      lease_ms,
      choose(runs) {
        const chosen = pick === null
          ? undefined
          : runs.filter(({ id }) => id.startsWith(prefix))[pick];
        return chosen ? { run: chosen.id, force } : null;
      },
    });
  }
  const id = `${prefix}${operation.run}`;
  const epoch = async (late: number) => ((await store.head(id))?.epoch ?? 1) - late;
  switch (operation.op) {
    case "create": {
      const { queue, priority, rows } = operation;
      return await store.create(
        {
          ...newRun(id),
          queue,
          priority,
          needs: { gpu: rows },
          parent: { run: "p", round: 1, seq: 2 },
        },
        Array.from({ length: rows }, (_, i) => row(`first#${i}`, i ? { input_hash: "f00" } : {})),
      );
    }
    case "claim": {
      const { owner, lease_ms, force, seen, ended } = operation;
      const seen_epoch = seen === null ? undefined : await epoch(seen);
      return await store.claim(id, newOwner(owner), { lease_ms, force, ended, seen_epoch });
    }
    case "renew":
      return await store.renew(id, await epoch(operation.late), operation.lease_ms);
    case "append": {
      const { keys, kind, late } = operation;
      return await store.append(
        id,
        await epoch(late),
        keys.map((one) => row(one, { kind, value: `{"${one.length}":0}` })),
      );
    }
    case "remove":
      return await store.remove(id, await epoch(operation.late), operation.seqs);
    case "finish":
      return await store.finish(id, await epoch(operation.late), operation.status, operation.error);
    case "release":
      return await store.release(id, await epoch(operation.late));
    case "reopen":
      return await store.reopen(id, await epoch(operation.late));
    case "request":
      return await store.request(id, operation.kind);
    case "signal":
      return await store.signal(id, operation.name, operation.value);
    case "read":
      return await store.read(id, operation.query);
  }
}

/** All that a store holds of a sequence, without times. */
export async function snapshot(store: Store, prefix: string): Promise<unknown> {
  const heads = (await store.heads({ limit: 3 })).filter(({ id }) => id.startsWith(prefix));
  const journals = await Promise.all(heads.map(({ id }) => store.read(id)));
  return withoutTimes({ heads, journals });
}

const TIMES = new Set(["created_ms", "updated_ms", "lease_until_ms", "at_ms"]);

function withoutTimes(value: unknown): unknown {
  if (value === undefined || value === null || typeof value !== "object") return value ?? null;
  if (Array.isArray(value)) return value.map(withoutTimes);
  return Object.fromEntries(
    Object.entries(value).filter(([name]) => !TIMES.has(name)).map((
      [name, one],
    ) => [name, withoutTimes(one)]),
  );
}
