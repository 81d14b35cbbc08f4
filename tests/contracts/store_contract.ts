import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../engine/clock.ts";
import type { Store } from "../../engine/stores/store.ts";
import { claimTests, dequeueTests, leaseTests } from "./store_claims.ts";
import { finishTests, releaseTests, signalTests } from "./store_ends.ts";
import { createTests, identityTests } from "./store_heads.ts";
import { type Bench, type Declare, keys, LEASE, newOwner, row, started } from "./store_rows.ts";

/**
 * A store under test. `second` opens another connection to the same data, where the driver can have
 * one.
 */
type StoreUnderTest = { store: Store; second?: () => Store; dispose(): Promise<void> };
type OpenStore = (clock: ManualClock) => StoreUnderTest | Promise<StoreUnderTest>;

/**
 * What every driver must do. One call declares the whole suite for one driver. `shared`: it has
 * `second`.
 */
export function storeContract(
  name: string,
  open: OpenStore,
  { ignore = false, shared = false }: { ignore?: boolean; shared?: boolean } = {},
): void {
  const test = (title: string, body: (bench: Bench) => Promise<void>) =>
    Deno.test({
      name: `${name}: ${title}`,
      ignore,
      async fn() {
        const clock = new ManualClock();
        const { store, second, dispose } = await open(clock);
        try {
          await body({ store, clock, second });
        } finally {
          await dispose();
        }
      },
    });
  createTests(test);
  identityTests(test);
  claimTests(test);
  leaseTests(test);
  dequeueTests(test);
  appendTests(test);
  removeTests(test);
  readTests(test);
  finishTests(test);
  signalTests(test);
  releaseTests(test);
  if (shared) sharedTests(test);
}

function appendTests(test: Declare): void {
  test("append() numbers rows without gaps; read() answers all", async ({ store, clock }) => {
    const epoch = await started(store);
    const rows = [row("x", { input_hash: "f00" }), row("y", { kind: "note/version" })];
    deepStrictEqual(await store.append("a", epoch, rows), { fenced: false, last_seq: 2 });
    await clock.advance(5);
    await store.append("a", epoch, [row("z")]);
    strictEqual((await store.head("a"))?.last_seq, 3);
    const at_ms = clock.now();
    deepStrictEqual(await store.read("a"), [
      { ...row("x", { input_hash: "f00" }), seq: 1, epoch, at_ms: at_ms - 5 },
      { ...row("y", { kind: "note/version" }), seq: 2, epoch, at_ms: at_ms - 5 },
      { ...row("z"), seq: 3, epoch, at_ms },
    ]);
  });

  test("append() with an old epoch writes nothing", async ({ store }) => {
    const old = await started(store);
    await store.append("a", old, [row("x")]);
    const { head } = await store.claim("a", newOwner("two"), { ...LEASE, force: true });
    deepStrictEqual(await store.append("a", old, [row("stale"), row("staler")]), { fenced: true });
    const newer = await store.append("a", head.epoch, [row("y")]);
    deepStrictEqual(newer, { fenced: false, last_seq: 2 });
    deepStrictEqual(await keys(store, "a"), ["x", "y"]);
  });

  test("appends at once keep their order; a fenced run loses only its rows", async ({ store }) => {
    const a = await started(store, "a");
    const b = await started(store, "b");
    await store.claim("b", newOwner("two"), { ...LEASE, force: true });
    const answers = await Promise.all([
      store.append("a", a, [row("1")]),
      store.append("b", b, [row("stale")]),
      store.append("a", a, [row("2"), row("3")]),
      store.append("b", b + 1, [row("new")]),
    ]);
    deepStrictEqual(answers.map((answer) => answer.fenced ? "fenced" : answer.last_seq), [
      1,
      "fenced",
      3,
      1,
    ]);
    deepStrictEqual(await keys(store, "a"), ["1", "2", "3"]);
    deepStrictEqual(await keys(store, "b"), ["new"]);
  });

  test("append() of no rows still checks the epoch", async ({ store }) => {
    const epoch = await started(store);
    deepStrictEqual(await store.append("a", epoch, []), { fenced: false, last_seq: 0 });
    deepStrictEqual(await store.append("a", epoch - 1, []), { fenced: true });
  });

  test("values are kept to the character", async ({ store }) => {
    const epoch = await started(store);
    const values = [
      '{"a":1e-7}',
      '"\\u0000 \\ud800 é 漢 🙂"',
      `"${"x".repeat(65_536)}"`,
      " [1 ,2]\n",
    ];
    await store.append("a", epoch, values.map((value, i) => row(`k${i}`, { value })));
    deepStrictEqual((await store.read("a")).map((found) => found.value), values);
  });
}

function removeTests(test: Declare): void {
  test("remove() deletes rows under the fence and uses no seq again", async ({ store }) => {
    const epoch = await started(store);
    await store.append("a", epoch, ["1", "2", "3", "4"].map((key) => row(key)));
    deepStrictEqual(await store.remove("a", epoch, [2, 4, 99]), { fenced: false, last_seq: 4 });
    deepStrictEqual(await keys(store, "a"), ["1", "3"]);
    deepStrictEqual(await store.remove("a", epoch - 1, [1]), { fenced: true });
    deepStrictEqual(await store.remove("a", epoch, []), { fenced: false, last_seq: 4 });
    deepStrictEqual(await store.append("a", epoch, [row("5")]), { fenced: false, last_seq: 5 });
    deepStrictEqual((await store.read("a")).map(({ seq, key }) => [seq, key]), [
      [1, "1"],
      [3, "3"],
      [5, "5"],
    ]);
  });
}

function readTests(test: Declare): void {
  const fill = async (store: Store) => {
    const epoch = await started(store);
    const rows = [
      "round/1/a#1",
      "round/1/b#1",
      "round/10/a#1",
      "round/2/a#1",
      "rounds",
      "round/2/b#1",
    ].map((key) => row(key));
    await store.append("a", epoch, [
      ...rows,
      row("round/1", { kind: "round" }),
      row("round/2", { kind: "round" }),
    ]);
    await started(store, "other");
    await store.append("other", 1, [row("round/1/a#1"), row("round/9", { kind: "round" })]);
  };

  test("read() by prefix answers exactly the keys under it, in order", async ({ store }) => {
    await fill(store);
    const under = async (prefix: string) =>
      (await store.read("a", { prefix })).map((found) => found.seq);
    deepStrictEqual(await under("round/1/"), [1, 2]);
    deepStrictEqual(await under("round/2"), [4, 6, 8]);
    deepStrictEqual(await under("round/"), [1, 2, 3, 4, 6, 7, 8]);
    deepStrictEqual(await under("nothing"), []);
    deepStrictEqual(await under("round_"), []);
    deepStrictEqual(await under("round%"), []);
  });

  test("read() by kinds, after a seq, with a limit, newest first", async ({ store }) => {
    await fill(store);
    const seqs = async (query: Parameters<Store["read"]>[1]) =>
      (await store.read("a", query)).map((found) => found.seq);
    deepStrictEqual(await seqs({ kinds: ["round"] }), [7, 8]);
    deepStrictEqual(await seqs({ kinds: ["round"], newest_first: true, limit: 1 }), [8]);
    deepStrictEqual(
      await seqs({ kinds: ["round"], prefix: "round/1", newest_first: true, limit: 1 }),
      [7],
    );
    deepStrictEqual(
      await seqs({ kinds: ["round", "result"], prefix: "round/2", newest_first: true }),
      [8, 6, 4],
    );
    deepStrictEqual(await seqs({ kinds: [] }), []);
    deepStrictEqual(await seqs({ after_seq: 5, limit: 2 }), [6, 7]);
    deepStrictEqual(await seqs({ after_seq: 2, prefix: "round/2/" }), [4, 6]);
    deepStrictEqual(await seqs({ newest_first: true, limit: 3 }), [8, 7, 6]);
    deepStrictEqual(await seqs({ limit: 0 }), []);
  });
}

/** Only of drivers that several connections can share. */
function sharedTests(test: Declare): void {
  test("two connections see each other's rows and fence each other", async ({ store, second }) => {
    const other = second!();
    const epoch = await started(store);
    await store.append("a", epoch, [row("x")]);
    deepStrictEqual(await keys(other, "a"), ["x"]);
    strictEqual((await other.claim("a", newOwner("two"), { ...LEASE, force: true })).claimed, true);
    deepStrictEqual(await store.append("a", epoch, [row("stale")]), { fenced: true });
    await other.append("a", epoch + 1, [row("y")]);
    deepStrictEqual(await keys(store, "a"), ["x", "y"]);
  });

  test("of many that claim a dead run at once, one gets it", async ({ store, second }) => {
    await started(store);
    const other = second!();
    const claims = await Promise.all(Array.from({ length: 10 }, (_, i) => {
      const claim = { ...LEASE, force: true, seen_epoch: 1 };
      return (i % 2 ? other : store).claim("a", newOwner(`p${i}`), claim);
    }));
    strictEqual(claims.filter((answer) => answer.claimed).length, 1);
    const winner = claims.findIndex((answer) => answer.claimed);
    const head = await store.head("a");
    deepStrictEqual([head?.epoch, head?.owner?.boot_id], [2, `p${winner}`]);
    ok(claims.every((answer) => answer.head.epoch === 2));
  });
}
