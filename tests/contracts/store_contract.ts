import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../engine/clock.ts";
import { InvalidInputError } from "../../engine/errors.ts";
import type { Choose, RunHead, Store } from "../../engine/store.ts";
import { finishTests, releaseTests } from "./store_ends.ts";
import { createTests, identityTests } from "./store_heads.ts";
import { type Bench, type Declare, keys, LEASE, newOwner, newRun, row, started } from "./store_rows.ts";

/** A store under test. `second` opens another connection to the same data, where the driver can have one. */
type StoreUnderTest = { store: Store; second?: () => Store; dispose(): Promise<void> };
type OpenStore = (clock: ManualClock) => StoreUnderTest | Promise<StoreUnderTest>;

/** What every driver must do. One call declares the whole suite for one driver. `shared`: it has `second`. */
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
  dequeueTests(test);
  appendTests(test);
  readTests(test);
  finishTests(test);
  releaseTests(test);
  if (shared) sharedTests(test);
}

function claimTests(test: Declare): void {
  test("claim() raises the epoch, starts the run and sets the lease", async ({ store, clock }) => {
    await store.create(newRun("a"));
    const { claimed, head } = await store.claim("a", newOwner("one"), LEASE);
    strictEqual(claimed, true);
    deepStrictEqual([head.epoch, head.status, head.owner?.boot_id], [1, "running", "one"]);
    strictEqual(head.lease_until_ms, clock.now() + 10_000);
  });

  test("claim() of another owner waits for the lease; the same owner may claim again", async ({ store, clock }) => {
    await started(store);
    const refused = await store.claim("a", newOwner("two"), LEASE);
    deepStrictEqual([refused.claimed, refused.head.epoch, refused.head.owner?.boot_id], [false, 1, "one"]);
    strictEqual((await store.claim("a", newOwner("one"), LEASE)).head.epoch, 2);
    await clock.advance(10_000);
    const taken = await store.claim("a", newOwner("two"), LEASE);
    deepStrictEqual([taken.claimed, taken.head.epoch, taken.head.owner?.boot_id], [true, 3, "two"]);
  });

  test("claim() with force takes a fresh lease, but not from an epoch that the caller has not seen", async ({ store }) => {
    await started(store);
    const force = { ...LEASE, force: true, seen_epoch: 1 };
    strictEqual((await store.claim("a", newOwner("two"), force)).claimed, true);
    const late = await store.claim("a", newOwner("three"), force);
    deepStrictEqual([late.claimed, late.head.owner?.boot_id], [false, "two"]);
  });

  test("claim() of an ended run needs `ended`; it can be tidied under the fence and stays ended", async ({ store }) => {
    for (const status of ["done", "cancelled"] as const) {
      const first = await started(store, status);
      await store.append(status, first, [row("x"), row("y")]);
      if (status === "cancelled") await store.request(status, "cancel");
      await store.finish(status, first, "done");
      strictEqual((await store.claim(status, newOwner("two"), LEASE)).claimed, false);
      const { claimed, head } = await store.claim(status, newOwner("two"), { ...LEASE, ended: true });
      deepStrictEqual([claimed, head.status, head.epoch], [true, status, first + 1]);
      strictEqual((await store.claim(status, newOwner("three"), { ...LEASE, ended: true })).claimed, false);
      deepStrictEqual(await store.append(status, head.epoch, [row("z")]), { fenced: false, last_seq: 3 });
      await store.remove(status, head.epoch, [1]);
      await store.request(status, "cancel");
      await store.release(status, head.epoch);
      deepStrictEqual([(await store.head(status))?.status, (await store.head(status))?.owner], [status, null]);
      deepStrictEqual(await store.append(status, head.epoch, [row("stale")]), { fenced: true });
      deepStrictEqual(await keys(store, status), ["y", "z"]);
    }
  });

  test("renew() extends the lease and fences a superseded owner", async ({ store, clock }) => {
    const epoch = await started(store);
    await clock.advance(9_000);
    deepStrictEqual(await store.renew("a", epoch, 10_000), { fenced: false, requests: [] });
    await clock.advance(9_000);
    strictEqual((await store.claim("a", newOwner("two"), LEASE)).claimed, false);
    await clock.advance(1_000);
    strictEqual((await store.claim("a", newOwner("two"), LEASE)).claimed, true);
    deepStrictEqual(await store.renew("a", epoch, 10_000), { fenced: true });
  });

  test("an owner that is late but not superseded keeps working", async ({ store, clock }) => {
    const epoch = await started(store);
    await clock.advance(60_000);
    deepStrictEqual(await store.append("a", epoch, [row("x")]), { fenced: false, last_seq: 1 });
    deepStrictEqual(await store.renew("a", epoch, 10_000), { fenced: false, requests: [] });
    strictEqual((await store.claim("a", newOwner("two"), LEASE)).claimed, false);
  });
}

function dequeueTests(test: Declare): void {
  test("dequeue() shows the unfinished runs, oldest first, and claims the chosen one", async ({ store, clock }) => {
    await store.create({ ...newRun("a"), queue: "q" });
    await store.create({ ...newRun("b"), queue: "q", priority: 1 });
    const c = await started(store, "c");
    await store.finish("c", c, "done");
    const shown: RunHead[][] = [];
    const head = await store.dequeue(newOwner("one"), {
      ...LEASE,
      choose(runs, now_ms) {
        shown.push(runs);
        strictEqual(now_ms, clock.now());
        return { run: "b", force: false };
      },
    });
    deepStrictEqual(shown.map((runs) => runs.map(({ id, status }) => [id, status])), [[["a", "created"], [
      "b",
      "created",
    ]]]);
    deepStrictEqual([head?.id, head?.epoch, head?.status, head?.owner?.boot_id], ["b", 1, "running", "one"]);
    deepStrictEqual(await store.head("b"), head);
  });

  test("dequeue() answers null if none is chosen or the chosen one is another's, unless forced", async ({ store }) => {
    await started(store);
    const take = (force: boolean | null) =>
      store.dequeue(newOwner("two"), { ...LEASE, choose: () => force === null ? null : { run: "a", force } });
    strictEqual(await take(null), null);
    strictEqual(await take(false), null);
    strictEqual((await store.head("a"))?.epoch, 1);
    strictEqual((await take(true))?.owner?.boot_id, "two");
  });

  test("dequeue() passes on what choose() throws and claims nothing", async ({ store }) => {
    await store.create(newRun("a"));
    const choose = () => {
      throw new InvalidInputError("Cannot choose because this is a test");
    };
    await rejects(store.dequeue(newOwner("one"), { ...LEASE, choose }), /^InvalidInputError: Cannot choose/);
    strictEqual((await store.head("a"))?.status, "created");
    strictEqual(
      (await store.dequeue(newOwner("one"), { ...LEASE, choose: () => ({ run: "a", force: false }) }))?.id,
      "a",
    );
  });

  test("of many that dequeue at once, each run goes to one", async ({ store, second }) => {
    for (const id of ["a", "b", "c"]) await store.create({ ...newRun(id), queue: "q" });
    const other = second?.() ?? store;
    const choose: Choose = (runs) => {
      const free = runs.find(({ status }) => status === "created");
      return free ? { run: free.id, force: false } : null;
    };
    const taken = await Promise.all(
      Array.from({ length: 5 }, (_, i) => (i % 2 ? other : store).dequeue(newOwner(`p${i}`), { ...LEASE, choose })),
    );
    deepStrictEqual(taken.flatMap((head) => head?.id ?? []).sort(), ["a", "b", "c"]);
    ok(taken.every((head) => head === null || head.epoch === 1));
  });
}

function appendTests(test: Declare): void {
  test("append() numbers rows without gaps and read() answers them whole", async ({ store, clock }) => {
    const epoch = await started(store);
    deepStrictEqual(
      await store.append("a", epoch, [row("x", { input_hash: "f00" }), row("y", { kind: "note/version" })]),
      {
        fenced: false,
        last_seq: 2,
      },
    );
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
    deepStrictEqual(await store.append("a", head.epoch, [row("y")]), { fenced: false, last_seq: 2 });
    deepStrictEqual(await keys(store, "a"), ["x", "y"]);
  });

  test("appends asked for at once keep their order, and a fenced run loses only its own rows", async ({ store }) => {
    const a = await started(store, "a");
    const b = await started(store, "b");
    await store.claim("b", newOwner("two"), { ...LEASE, force: true });
    const answers = await Promise.all([
      store.append("a", a, [row("1")]),
      store.append("b", b, [row("stale")]),
      store.append("a", a, [row("2"), row("3")]),
      store.append("b", b + 1, [row("new")]),
    ]);
    deepStrictEqual(answers.map((answer) => answer.fenced ? "fenced" : answer.last_seq), [1, "fenced", 3, 1]);
    deepStrictEqual(await keys(store, "a"), ["1", "2", "3"]);
    deepStrictEqual(await keys(store, "b"), ["new"]);
  });

  test("remove() deletes rows under the fence and uses no seq again", async ({ store }) => {
    const epoch = await started(store);
    await store.append("a", epoch, ["1", "2", "3", "4"].map((key) => row(key)));
    deepStrictEqual(await store.remove("a", epoch, [2, 4, 99]), { fenced: false, last_seq: 4 });
    deepStrictEqual(await keys(store, "a"), ["1", "3"]);
    deepStrictEqual(await store.remove("a", epoch - 1, [1]), { fenced: true });
    deepStrictEqual(await store.remove("a", epoch, []), { fenced: false, last_seq: 4 });
    deepStrictEqual(await store.append("a", epoch, [row("5")]), { fenced: false, last_seq: 5 });
    deepStrictEqual((await store.read("a")).map(({ seq, key }) => [seq, key]), [[1, "1"], [3, "3"], [5, "5"]]);
  });

  test("append() of no rows still checks the epoch", async ({ store }) => {
    const epoch = await started(store);
    deepStrictEqual(await store.append("a", epoch, []), { fenced: false, last_seq: 0 });
    deepStrictEqual(await store.append("a", epoch - 1, []), { fenced: true });
  });

  test("values are kept to the character", async ({ store }) => {
    const epoch = await started(store);
    const values = ['{"a":1e-7}', '"\\u0000 \\ud800 é 漢 🙂"', `"${"x".repeat(65_536)}"`, " [1 ,2]\n"];
    await store.append("a", epoch, values.map((value, i) => row(`k${i}`, { value })));
    deepStrictEqual((await store.read("a")).map((found) => found.value), values);
  });
}

function readTests(test: Declare): void {
  const fill = async (store: Store) => {
    const epoch = await started(store);
    const rows = ["round/1/a#1", "round/1/b#1", "round/10/a#1", "round/2/a#1", "rounds", "round/2/b#1"].map((key) =>
      row(key)
    );
    await store.append("a", epoch, [...rows, row("round/1", { kind: "round" }), row("round/2", { kind: "round" })]);
    await started(store, "other");
    await store.append("other", 1, [row("round/1/a#1"), row("round/9", { kind: "round" })]);
  };

  test("read() by prefix of the key answers exactly the keys under it, in order of seq", async ({ store }) => {
    await fill(store);
    const under = async (prefix: string) => (await store.read("a", { prefix })).map((found) => found.seq);
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
    deepStrictEqual(await seqs({ kinds: ["round"], prefix: "round/1", newest_first: true, limit: 1 }), [7]);
    deepStrictEqual(await seqs({ kinds: ["round", "result"], prefix: "round/2", newest_first: true }), [8, 6, 4]);
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

  test("of many that claim one dead run at once, exactly one gets it", async ({ store, second }) => {
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
