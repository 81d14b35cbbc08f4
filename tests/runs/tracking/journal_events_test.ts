import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import type { EngineEvent, ReadQuery, Store } from "../../../engine/mod.ts";
import { type Home, JournalEvents } from "../../../runs/mod.ts";
import type { MemoryStore } from "../../../testing/mod.ts";
import { createFakeRun, executeFake, forkFake, freshFakeHome } from "../fake_home.ts";

async function all(events: AsyncIterable<EngineEvent>): Promise<EngineEvent[]> {
  return await Array.fromAsync(events);
}

/** Only what JournalEvents reads, and how many rows. */
function counting(store: Store, counted: { read: number }): Store {
  const read = async (run: string, query?: ReadQuery) => {
    const rows = await store.read(run, query);
    counted.read += rows.length;
    return rows;
  };
  return { read, head: (run: string) => store.head(run) } as Partial<Store> as Store;
}

const headOf = async (home: Home, id = "a") => (await home.store.head(id))!;

/** What happened by key, without times. The engine may announce two stages in either order. */
function told(events: readonly EngineEvent[]): string[] {
  const kept = events.filter(({ type }) => /^(stage_|metrics|round_closed)/.test(type));
  return kept.map(({ at_ms: _, ...event }) => JSON.stringify(event, Object.keys(event).sort()))
    .sort();
}

Deno.test("JournalEvents reads from a journal what the engine reported of stages, metrics and rounds", async () => {
  const home = await freshFakeHome();
  const head = await createFakeRun(home, "a", { rounds: 2 });
  const reported: EngineEvent[] = [];
  await executeFake(home, "a", { onEvent: (event) => void reported.push(event) });
  const events = new JournalEvents(home, head);
  const read = await all(events.next());
  deepStrictEqual(told(read), told(reported));
  ok(told(read).length > 20);
  strictEqual(read[0]!.type, "run_started");
  deepStrictEqual(await all(events.next()), []);
});

Deno.test("JournalEvents.past() of a long run reads its newest rounds, and next() only what is new", async () => {
  const home = await freshFakeHome();
  const head = await createFakeRun(home, "a", { rounds: 3 });
  await executeFake(home, "a");
  const rows = await home.store.read("a");
  const [round] = rows.filter(({ kind }) => kind === "round");
  const metrics = rows.filter(({ kind, key }) => kind === "metrics" && key.startsWith("round/1/"));
  const { id: _, ...rest } = head;
  await home.store.create({ ...rest, id: "long" });
  const owner = { boot_id: "b", host: "far", pid: 7, process_start: "then" };
  const { epoch } = (await home.store.claim("long", owner, { lease_ms: 10_000 })).head;
  const close = (n: number) => [
    ...metrics.map(({ kind, key, value }) => ({ kind, key: key.replace("/1/", `/${n}/`), value })),
    { kind: "round" as const, key: `round/${n}`, value: round!.value },
  ];
  for (let n = 1; n <= 300; n++) await home.store.append("long", epoch, close(n));
  const counted = { read: 0 };
  const events = new JournalEvents({
    store: counting(home.store, counted),
    artifacts: home.artifacts,
  }, await headOf(home, "long"));
  const past = await all(events.past());
  strictEqual(past.filter(({ type }) => type === "round_closed").length, 49); // Before the 50th newest.
  ok(counted.read < 400, `${counted.read} rows`);
  counted.read = 0;
  await home.store.append("long", epoch, close(301));
  const news = await all(events.next());
  deepStrictEqual(news.at(-1)!.type, "round_closed");
  strictEqual(counted.read, close(301).length);
});

Deno.test("JournalEvents.past() has recoveries of any age, and of stages only what is in progress", async () => {
  const home = await freshFakeHome();
  const head = await createFakeRun(home, "a", { rounds: 3 });
  const { id: _, ...rest } = head;
  await executeFake(home, "a");
  const rows = await home.store.read("a");
  await home.store.create({ ...rest, id: "b" });
  const owner = { boot_id: "b", host: "far", pid: 7, process_start: "then" };
  const { epoch } = (await home.store.claim("b", owner, { lease_ms: 10_000 })).head;
  const at = rows.findIndex(({ key }) => key.startsWith("round/2/generate_slab"));
  const recovery = { kind: "recovery" as const, key: "k", value: '{"cause":"c","action":"adopt"}' };
  const recorded = rows.slice(0, at + 1).map(({ kind, key, value }) => ({ kind, key, value }));
  await home.store.append("b", epoch, [recovery, ...recorded]);
  const past = await all(new JournalEvents(home, await headOf(home, "b")).past());
  const types = (type: EngineEvent["type"]) => past.filter((event) => event.type === type);
  deepStrictEqual(types("note").map((event) => (event as { kind: string }).kind), ["recovery"]);
  const open = new Set(types("stage_started").map((event) => (event as { key: string }).key));
  for (const event of types("stage_finished")) open.delete((event as { key: string }).key);
  deepStrictEqual([...open], [rows[at]!.key]);
});

Deno.test("JournalEvents.past() of a fork begins with the metrics that it inherited", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 4 });
  await executeFake(home, "a");
  await forkFake(home, "a", { round: 3, id: "b" });
  const past = await all(new JournalEvents(home, await headOf(home, "b")).past());
  const rewards = past.filter((event) =>
    event.type === "metrics" && "reward/mean" in event.metrics
  );
  strictEqual(rewards.length, 3);
  const [closed] = past.filter((event) => event.type === "round_closed");
  deepStrictEqual([closed!.round, closed!.times], [3, 4]);
});

Deno.test("JournalEvents skips damaged rows, and says Infinity for rounds that are not recorded", async () => {
  const home = await freshFakeHome();
  const head = await createFakeRun(home, "a", { rounds: 1 });
  await executeFake(home, "a");
  const store = home.store as MemoryStore;
  const [round] = await store.read("a", { kinds: ["round"] });
  store.damage("a", { seq: round!.seq, value: "{" });
  const found = await all(new JournalEvents(home, head).next());
  strictEqual(found.filter(({ type }) => type === "round_closed").length, 0);
  ok(found.some(({ type }) => type === "metrics"));
  store.damage("a", round!);
  const graphs = [undefined, null, { round: "1" }].map((loops) =>
    JSON.stringify({ ...JSON.parse(head.graph), loops })
  );
  for (const graph of [...graphs, "{", "null"]) {
    const events = await all(new JournalEvents(home, { ...head, graph }).next());
    const times = events.flatMap((event) => event.type === "round_closed" ? [event.times] : []);
    deepStrictEqual(times, [Infinity], graph);
  }
});
