import {
  deepStrictEqual,
  match,
  notStrictEqual,
  ok,
  rejects,
  strictEqual,
} from "node:assert/strict";
import { type ArtifactRef, ArtifactStore, processOwner } from "../../engine/mod.ts";
import { diffRuns, forkRun, type Home, type RunDiff, whyEntry } from "../../runs/mod.ts";
import { settingsRows } from "../../runs/session/settings.ts";
import { damagedStore } from "./garbage/damaged_store.ts";
import { createFakeRun, executeFake, freshFakeHome } from "./fake_home.ts";

async function diff(home: Home, a: string, b: string): Promise<RunDiff> {
  const heads = { a: (await home.store.head(a))!, b: (await home.store.head(b))! };
  return await diffRuns({ store: home.store, artifacts: home.artifacts }, heads);
}

async function executed(
  home: Home,
  id: string,
  overrides: Record<string, unknown> = {},
): Promise<void> {
  await createFakeRun(home, id, overrides);
  await executeFake(home, id);
}

async function forked(home: Home, id: string, overrides: string[] = []): Promise<void> {
  await forkRun(home, (await home.store.head("a"))!, { round: 3, id, overrides });
  await executeFake(home, id);
}

Deno.test("diff finds a run equal to its repetition and to its unchanged fork", async () => {
  const home = await freshFakeHome();
  await executed(home, "a");
  await executed(home, "b");
  await forked(home, "c");
  for (const other of ["b", "c"]) {
    const { equal, config, loops, ledger, recoveries } = await diff(home, "a", other);
    deepStrictEqual([equal, config, ledger], [true, [], []]);
    deepStrictEqual(loops, [{
      loop: "round",
      a: 6,
      b: 6,
      versions: null,
      batches: null,
      losses: null,
    }]);
    deepStrictEqual(recoveries, { a: {}, b: other === "c" ? { fork: 1 } : {} });
  }
});

Deno.test("diff shows where a fork with a different learning rate departs", async () => {
  const home = await freshFakeHome();
  await executed(home, "a");
  await forked(home, "b", ["trainer.optimizer.lr=0.02", "rounds=7"]);
  const { equal, config, graph, loops, ledger, digest } = await diff(home, "a", "b");
  strictEqual(equal, false);
  deepStrictEqual(config, [{ path: "rounds", a: 6, b: 7 }, {
    path: "trainer.optimizer.lr",
    a: 0.1,
    b: 0.02,
  }]);
  deepStrictEqual(graph, { only_a: [], only_b: [] });
  const [{ a, b, versions, losses }] = loops as [RunDiff["loops"][number]];
  deepStrictEqual([a, b, versions], [6, 7, {
    round: "round/4",
    what: ["optimizer.lr 0.1 -> 0.02"],
  }]);
  // The rate itself is the first thing of a step that differs; the loss follows a round later.
  deepStrictEqual(losses, { round: "round/4", what: ["lr 0.1 -> 0.02"] });
  deepStrictEqual(ledger.find(({ path }) => path === "read"), { path: "read", a: 12, b: 14 });
  notStrictEqual(digest.a, digest.b);
});

Deno.test("diff: other draws, another algorithm and another graph are told as such", async () => {
  const home = await freshFakeHome();
  await executed(home, "a");
  await executed(home, "b", { seed: 4 });
  const drawn = await diff(home, "a", "b");
  deepStrictEqual(drawn.config, [{ path: "seed", a: 3, b: 4 }]);
  deepStrictEqual(drawn.loops[0]!.batches, { round: "round/1", what: ["samples", "columns"] });
  deepStrictEqual(drawn.loops[0]!.versions, { round: "round/1", what: ["the batch"] });
  await executed(home, "c", {
    algorithm: { name: "grpo", clip_low: 0.3 },
    checkpoints: { every_rounds: 3 },
  });
  const difference = await diff(home, "a", "c");
  ok(difference.config.some(({ path }) => path === "algorithm.clip_low"));
  deepStrictEqual(difference.loops[0]!.versions, {
    round: "round/1",
    what: ["the loss's expression"],
  });
  await executed(home, "d", {
    evaluate: { problems: 2 },
    data: { train: [{ path: `${home.dir}/train.jsonl` }], eval: [{ path: "e" }] },
  })
    .catch(() => {}); // Fake runs have no rows to evaluate on: its graph is what is compared.
  ok(
    (await diff(home, "a", "d")).graph.only_b.some((line) => line.includes("summarise_evaluation")),
  );
});

Deno.test("why explains a prefix by its parent, and suggests keys that exist", async () => {
  const home = await freshFakeHome();
  await executed(home, "a");
  await forked(home, "b");
  const head = (await home.store.head("b"))!;
  const entry = await whyEntry(home.store, head, "round/4/train_policy");
  deepStrictEqual([entry.run, entry.stage, entry.waited_for?.key], [
    "b",
    "train_policy@1",
    "round/4/assign_credit",
  ]);
  const before = await whyEntry(home.store, head, "round/3/train_policy");
  deepStrictEqual([before.run, before.state], ["a", "done"]);
  strictEqual((await whyEntry(home.store, head, "prepare_policy")).run, "a");
  await rejects(whyEntry(home.store, head, "round/4/score_group"), (error: Error) => {
    match(error.message, /no such entry\. Below it are:\n {2}round\/4\/score_group#draw-/);
    return true;
  });
  await rejects(
    whyEntry(home.store, head, "round/4/trian_policy"),
    /did you mean round\/4\/train_policy/,
  );
});

Deno.test("diff lists settings that a resume changed, not as differences", async () => {
  const home = await freshFakeHome();
  await executed(home, "a");
  await executed(home, "b");
  const changed = { path: "workers.port", read_by: "workers", from: 0, to: 9999 } as const;
  const { head: { epoch } } = await home.store.claim("b", processOwner(), {
    lease_ms: 1000,
    ended: true,
  });
  await home.store.append("b", epoch, settingsRows([changed]));
  const { equal, config, settings } = await diff(home, "a", "b");
  deepStrictEqual([equal, config, settings], [true, [], { a: [], b: [changed] }]);
  await forkRun(home, (await home.store.head("b"))!, { round: 3, id: "c" });
  deepStrictEqual((await diff(home, "b", "c")).settings, { a: [], b: [] });
});

Deno.test("diff names a damaged row, and an artifact that is a directory", async () => {
  const home = await freshFakeHome();
  await executed(home, "a");
  await executed(home, "b", { seed: 4 });
  const heads = { a: (await home.store.head("a"))!, b: (await home.store.head("b"))! };
  for (const kind of ["note/version", "round"] as const) {
    for (const value of ["{", '{"a":1}']) {
      const store = damagedStore(home.store, { kind, value, run: "b" });
      await rejects(diffRuns({ store, artifacts: home.artifacts }, heads), {
        code: "lost_record",
        message: new RegExp(`^Cannot read the '${kind}' row of .*Fix: put the journal back`),
      });
    }
  }
  for (const field of ["config", "packages", "graph"] as const) {
    const damaged = { ...heads, b: { ...heads.b, [field]: "{broken" } };
    await rejects(diffRuns({ store: home.store, artifacts: home.artifacts }, damaged), {
      code: "lost_record",
      message: new RegExp(`^Cannot read run 'b' because its '${field}' in the journal is damaged`),
    });
  }
  const row = (await home.store.read("b", { kinds: ["note/version"] }))[1];
  const path = home.artifacts.path((JSON.parse(row!.value) as { record: ArtifactRef }).record);
  await Deno.remove(path);
  await Deno.mkdir(path);
  const artifacts = new ArtifactStore(home.artifacts.dir); // It has read nothing yet.
  await rejects(diffRuns({ store: home.store, artifacts }, heads), {
    code: "lost_record",
    message: /^Cannot read artifact .* because it is a directory: /,
  });
});
