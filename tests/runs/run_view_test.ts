import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { online } from "../../flows/online.ts";
import { graphName, runView } from "../../runs/mod.ts";
import { execute, onlineConfig, stores } from "../flows/fixtures.ts";
import { damagedStore } from "./garbage/damaged_store.ts";
import { createFakeRun, executeFake, freshFakeHome } from "./fake_home.ts";

const NOTHING_LIVE = { workers: [], metrics: {} };

Deno.test("runView() shows how a run ended, and adds up its loops", async () => {
  const { store, artifacts, dir, model } = await stores();
  await execute(online, onlineConfig(model), { store, artifacts, dir });
  const metrics = { "reward/mean": 0.5 };
  const view = await runView(store, (await store.head("run"))!, { workers: [], metrics });
  const { id, status, graph, epoch, engine_pid, round, generated } = view;
  deepStrictEqual({ id, status, graph, epoch, engine_pid, round }, {
    id: "run",
    status: "done",
    graph: "online",
    epoch: 1,
    engine_pid: null,
    round: 3,
  });
  deepStrictEqual([generated.groups, generated.samples], [6, 12]);
  ok(generated.tokens > 12);
  strictEqual(view.policy!.digest!.length, 64);
  deepStrictEqual(view.ledger, {
    read: 6,
    trained: 6,
    filtered: {},
    stale: 0,
    failed: {},
    pending: 0,
  });
  deepStrictEqual(view.metrics, metrics);
});

Deno.test("runView() of a run that no engine has taken is interrupted and empty", async () => {
  const home = await freshFakeHome();
  const head = await createFakeRun(home, "a");
  const view = await runView(home.store, head, NOTHING_LIVE);
  deepStrictEqual([view.status, view.epoch, view.loop, view.round], ["interrupted", 0, null, 0]);
  deepStrictEqual([view.policy, view.parent, view.error], [null, null, null]);
  deepStrictEqual(view.generated, { groups: 0, samples: 0, tokens: 0 });
  strictEqual(graphName(head), "online");
});

Deno.test("runView() shows the policy that was trained last, though numbers start again after a warm-up", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 3 });
  await executeFake(home, "a");
  const head = (await home.store.head("a"))!;
  const rows = await home.store.read("a");
  const [row] = rows.filter(({ kind }) => kind === "note/version").slice(-1);
  const later = [0, 1].map((number) => ({
    ...row!,
    key: `later ${number}`,
    value: JSON.stringify({ ...JSON.parse(row!.value), number, steps: [] }),
  }));
  await home.store.create({ ...head, id: "b" }, [...rows, ...later]);
  const newest = async (id: string) =>
    (await runView(home.store, (await home.store.head(id))!, NOTHING_LIVE)).policy!;
  const { version, number } = await newest("b");
  deepStrictEqual([(await newest("a")).number, version, number], [3, "later 1", 1]);
});

Deno.test("runView() shows a run although rows of it are damaged", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  await executeFake(home, "a");
  const head = (await home.store.head("a"))!;
  const store = damagedStore(home.store, { kind: "note/generated", value: "{" });
  const [whole, view] = [
    await runView(home.store, head, NOTHING_LIVE),
    await runView(store, head, NOTHING_LIVE),
  ];
  ok(whole.generated.tokens > 0);
  deepStrictEqual(view, { ...whole, generated: { ...whole.generated, tokens: 0 } });
});

Deno.test("runView() hides the workers of a run that does not run", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  await executeFake(home, "a");
  const workers = [{ group: "trainer", rank: 0 }] as never;
  const head = (await home.store.head("a"))!;
  deepStrictEqual((await runView(home.store, head, { workers, metrics: {} })).workers, []);
});
