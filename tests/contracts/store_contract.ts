import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../engine/clock.ts";
import { EngineError, InvalidInputError } from "../../engine/errors.ts";
import { JOURNAL_VERSION } from "../../engine/journal_version.ts";
import { BAD_IDS } from "./run_ids.ts";
import type { Choose, NewRow, NewRun, Owner, RunHead, Store } from "../../engine/store.ts";

/** A store under test. `second` opens another connection to the same data, where the driver can have one. */
export type StoreUnderTest = { store: Store; second?: () => Store; dispose(): Promise<void> };
export type OpenStore = (clock: ManualClock) => StoreUnderTest | Promise<StoreUnderTest>;

type Bench = { store: Store; clock: ManualClock; second?: () => Store };

const LEASE = { lease_ms: 10_000 };

export function newRun(id: string): NewRun {
  return { id, name: `run ${id}`, entry: "flows/mod.ts", graph: "g", graph_hash: "h", config: "{}", packages: "{}" };
}

export function newOwner(name: string): Owner {
  return { boot_id: name, host: "host", pid: 7, process_start: "1" };
}

export function row(key: string, fields: Partial<NewRow> = {}): NewRow {
  return { kind: "result", key, value: `{"of":"${key}"}`, ...fields };
}

/** Creates and claims a run; answers its epoch. */
async function started(store: Store, id = "a"): Promise<number> {
  await store.create(newRun(id));
  return (await store.claim(id, newOwner("one"), LEASE)).head.epoch;
}

async function keys(store: Store, run: string): Promise<string[]> {
  return (await store.read(run)).map((found) => found.key);
}

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
  headTests(test);
  claimTests(test);
  dequeueTests(test);
  appendTests(test);
  readTests(test);
  endTests(test);
  if (shared) sharedTests(test);
}

type Declare = (title: string, body: (bench: Bench) => Promise<void>) => void;

function headTests(test: Declare): void {
  test("create() answers an unowned head that head() and heads() show", async ({ store, clock }) => {
    const made = await store.create(newRun("a"));
    deepStrictEqual(made, {
      ...newRun("a"),
      status: "created",
      epoch: 0,
      last_seq: 0,
      owner: null,
      lease_until_ms: 0,
      requests: [],
      error: null,
      created_ms: clock.now(),
      updated_ms: clock.now(),
      queue: null,
      priority: 0,
      needs: {},
      parent: null,
      home: null,
      journal: JOURNAL_VERSION,
    });
    deepStrictEqual(await store.head("a"), made);
    await store.create(newRun("b"));
    await store.create(newRun("c"));
    deepStrictEqual((await store.heads()).map((head) => head.id), ["c", "b", "a"]);
    deepStrictEqual((await store.heads({ limit: 1 })).map((head) => head.id), ["c"]);
  });

  test("create() keeps the queue, the priority, the needs, the parent and the home", async ({ store }) => {
    const given = {
      ...newRun("a"),
      ...{ queue: "night", priority: -3, needs: { gpu: 4 }, parent: { run: "b", round: 2, seq: 41 }, home: "h" },
    };
    const made = await store.create(given);
    deepStrictEqual({ ...made, ...given }, made);
    deepStrictEqual(await store.head("a"), made);
  });

  test("claim() raises a journal's version to this Holdfast's, and takes none that is newer", async ({ store }) => {
    await store.create({ ...newRun("old"), journal: 1 });
    strictEqual((await store.head("old"))?.journal, 1);
    strictEqual((await store.claim("old", newOwner("one"), LEASE)).head.journal, JOURNAL_VERSION);
    const newer = await store.create({ ...newRun("newer"), queue: "q", journal: JOURNAL_VERSION + 1 });
    const refused = await store.claim("newer", newOwner("one"), { ...LEASE, force: true });
    deepStrictEqual(refused, { claimed: false, head: newer });
    const choose = () => ({ run: "newer", force: true });
    strictEqual(await store.dequeue(newOwner("one"), { ...LEASE, choose }), null);
    deepStrictEqual(await store.head("newer"), newer);
  });

  test("create() with rows has them in its journal from the start, and the first append goes on after them", async ({ store, clock }) => {
    const made = await store.create(newRun("a"), [row("x", { input_hash: "f00" }), row("y", { kind: "round" })]);
    deepStrictEqual([made.last_seq, made.epoch, await store.head("a")], [2, 0, made]);
    const at_ms = clock.now();
    deepStrictEqual(await store.read("a"), [
      { ...row("x", { input_hash: "f00" }), seq: 1, epoch: 0, at_ms },
      { ...row("y", { kind: "round" }), seq: 2, epoch: 0, at_ms },
    ]);
    await rejects(store.create(newRun("a"), [row("z")]), EngineError);
    const { head } = await store.claim("a", newOwner("one"), LEASE);
    deepStrictEqual(await store.append("a", head.epoch, [row("z")]), { fenced: false, last_seq: 3 });
    deepStrictEqual(await keys(store, "a"), ["x", "y", "z"]);
  });

  test("identity() is the journal's own, and stays", async ({ store, second }) => {
    const identity = await store.identity();
    ok(/^[0-9a-f-]{32,36}$/.test(identity.id), identity.id);
    await store.create(newRun("a"));
    deepStrictEqual(await store.identity(), identity);
    if (second) {
      const other = second();
      deepStrictEqual(await other.identity(), identity);
      await other.close();
    }
  });

  test("a run whose id is none is left out and refused; the others are answered as if it were not there", async ({ store }) => {
    await store.create(newRun("good"));
    for (const id of BAD_IDS) await store.create({ ...newRun(id), queue: "q" }, [row("x")]);
    deepStrictEqual((await store.heads()).map(({ id }) => id), ["good"]);
    deepStrictEqual(await store.misnamed(), BAD_IDS.toReversed());
    const seen: string[] = [];
    const choose: Choose = (runs) => {
      seen.push(...runs.map(({ id }) => id));
      return { run: runs[0]!.id, force: false };
    };
    strictEqual((await store.dequeue(newOwner("one"), { lease_ms: 1, choose }))?.id, "good");
    deepStrictEqual(seen, ["good"]);
    for (const id of BAD_IDS) {
      await rejects(store.head(id), /as a run's id: .*Fix: /);
      await rejects(store.claim(id, newOwner("one"), LEASE), InvalidInputError);
      await rejects(store.request(id, "cancel"), InvalidInputError);
      deepStrictEqual((await store.read(id)).map(({ key }) => key), ["x"]);
    }
  });

  test("create() refuses an id that is taken and keeps the first run", async ({ store }) => {
    await store.create(newRun("a"));
    await rejects(store.create({ ...newRun("a"), name: "other" }), EngineError);
    strictEqual((await store.head("a"))?.name, "run a");
  });

  test("a run that does not exist is null to head() and an error to a writer", async ({ store }) => {
    strictEqual(await store.head("none"), null);
    await rejects(store.append("none", 1, [row("x")]), EngineError);
    await rejects(store.claim("none", newOwner("one"), LEASE), EngineError);
    await rejects(store.request("none", "cancel"), EngineError);
    deepStrictEqual(await store.read("none"), []);
  });
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
      throw new InvalidInputError("Cannot choose as this is a test");
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

function endTests(test: Declare): void {
  test("finish() ends the run, releases the lease and closes the journal to its epoch", async ({ store }) => {
    const epoch = await started(store);
    deepStrictEqual(await store.finish("a", epoch, "failed", '{"code":"x"}'), { fenced: false, status: "failed" });
    const head = await store.head("a");
    deepStrictEqual([head?.status, head?.owner, head?.error], ["failed", null, '{"code":"x"}']);
    deepStrictEqual(await store.append("a", epoch, [row("late")]), { fenced: true });
    deepStrictEqual(await store.renew("a", epoch, 10_000), { fenced: true });
    deepStrictEqual(await store.finish("a", epoch, "done"), { fenced: false, status: "failed" });
    deepStrictEqual(await store.finish("a", epoch - 1, "done"), { fenced: true });
  });

  test("a cancel request that came before finish() wins; one that came after changes nothing", async ({ store }) => {
    const first = await started(store, "first");
    const asked = await store.request("first", "cancel");
    deepStrictEqual([asked.status, asked.requests], ["running", ["cancel"]]);
    deepStrictEqual(await store.renew("first", first, 10_000), { fenced: false, requests: ["cancel"] });
    deepStrictEqual(await store.finish("first", first, "done"), { fenced: false, status: "cancelled" });

    const late = await started(store, "late");
    await store.finish("late", late, "done");
    strictEqual((await store.request("late", "cancel")).status, "done");
  });

  test("signal() needs no owner, keeps the first value, and leaves an owner's appends in order", async ({ store, second }) => {
    const other = second?.() ?? store;
    await store.create(newRun("a"));
    const signals = async () =>
      (await store.read("a", { kinds: ["signal"] })).map(({ key, value, epoch }) => [key, value, epoch]);
    await other.signal("a", "go", "1");
    const { epoch } = (await store.claim("a", newOwner("one"), LEASE)).head;
    await store.append("a", epoch, [row("x")]);
    await Promise.all([
      store.append("a", epoch, [row("y")]),
      other.signal("a", "stop", "true"),
      store.append("a", epoch, [row("z")]),
    ]);
    await other.signal("a", "go", "2");
    deepStrictEqual(await signals(), [["go", "1", 0], ["stop", "true", epoch]]);
    const rows = await store.read("a");
    deepStrictEqual(rows.filter(({ kind }) => kind !== "signal").map(({ key }) => key), ["x", "y", "z"]);
    deepStrictEqual(rows.map(({ seq }) => seq), [1, 2, 3, 4, 5]);
    await store.finish("a", epoch, "done");
    strictEqual((await other.signal("a", "late", "1")).status, "done");
    strictEqual((await signals()).length, 2);
    await rejects(store.signal("none", "go", "1"), EngineError);
  });

  test("finish() and a cancel asked for at once agree on one status", async ({ store, second }) => {
    for (let i = 0; i < 10; i++) {
      const epoch = await started(store, `r${i}`);
      const asker = second?.() ?? store;
      const finish = () => store.finish(`r${i}`, epoch, "done");
      const cancel = () => asker.request(`r${i}`, "cancel");
      const [first, other] = i % 2 ? [finish(), cancel()] : [cancel(), finish()];
      await Promise.all([first, other]);
      const ended = await (i % 2 ? first : other);
      const head = await store.head(`r${i}`);
      deepStrictEqual(ended, { fenced: false, status: head?.status });
      ok(head?.status === "done" || head?.status === "cancelled"); // Which came first is the server's to say.
    }
  });

  test("a request is kept once, in order; the next owner inherits a cancel and not a drain", async ({ store }) => {
    await started(store);
    await store.request("a", "drain");
    await store.request("a", "cancel");
    deepStrictEqual((await store.request("a", "drain")).requests, ["drain", "cancel"]);
    const { head } = await store.claim("a", newOwner("two"), { ...LEASE, force: true });
    deepStrictEqual(head.requests, ["cancel"]);
  });

  test("cancelling a run that nobody owns takes effect at once; draining one changes nothing", async ({ store }) => {
    await store.create(newRun("a"));
    deepStrictEqual((await store.request("a", "drain")).requests, []);
    strictEqual((await store.request("a", "cancel")).status, "cancelled");
    strictEqual((await store.claim("a", newOwner("one"), LEASE)).claimed, false);
    const epoch = await started(store, "b");
    await store.release("b", epoch);
    strictEqual((await store.request("b", "cancel")).status, "cancelled");
  });

  test("release() gives the run back unfinished, to be claimed at once", async ({ store }) => {
    const epoch = await started(store);
    await store.release("a", epoch);
    const head = await store.head("a");
    deepStrictEqual([head?.status, head?.owner, head?.epoch], ["running", null, 1]);
    deepStrictEqual(await store.append("a", epoch, [row("late")]), { fenced: true });
    strictEqual((await store.claim("a", newOwner("two"), LEASE)).claimed, true);
    await store.release("a", epoch); // Superseded: must not take the run from its new owner.
    strictEqual((await store.head("a"))?.owner?.boot_id, "two");
  });

  test("release() with a cancel request open cancels the run", async ({ store }) => {
    const epoch = await started(store);
    await store.request("a", "cancel");
    await store.release("a", epoch);
    strictEqual((await store.head("a"))?.status, "cancelled");
  });

  test("a failed run is claimed as failed and reopened by its owner; a done one is not", async ({ store }) => {
    const epoch = await started(store);
    await store.append("a", epoch, [row("x")]);
    await store.finish("a", epoch, "failed", "{}");
    deepStrictEqual(await store.reopen("a", epoch), { fenced: true });
    const { claimed, head } = await store.claim("a", newOwner("two"), LEASE);
    deepStrictEqual([claimed, head.status, head.epoch], [true, "failed", 2]);
    deepStrictEqual(await store.reopen("a", 2), { fenced: false, last_seq: 1 });
    const opened = await store.head("a");
    deepStrictEqual([opened?.status, opened?.error], ["running", null]);
    await store.finish("a", 2, "done");
    strictEqual((await store.claim("a", newOwner("three"), LEASE)).claimed, false);
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
