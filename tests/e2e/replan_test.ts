/** Numerics that change under a run, with real workers: fewer ranks, and a device without room. */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { at, orphans, recorded, rl, show, SMALL, withFreshHome } from "../crash/runs.ts";

type Numerics = { world_size: number; micro_batch_tokens_max: number };
const SHORT = [
  "seed=101",
  "warmup.rounds=2",
  "online.rounds=3",
  "checkpoints.every_rounds=2",
  "workers.grace_s=0.5",
];

/** Numerics of every trained version, in order. */
async function numericsOf(home: string): Promise<Numerics[]> {
  const { rows } = await recorded({ home, store: null }, "run");
  const notes = rows.filter(({ kind }) => kind === "note/version").map(({ value }) =>
    JSON.parse(value)
  );
  const records = notes.filter(({ number }) => number > 0).map(async ({ record: { sha256 } }) => {
    const text = await Deno.readTextFile(`${home}/artifacts/${sha256.slice(0, 2)}/${sha256}`);
    return JSON.parse(text).numerics as Numerics;
  });
  return await Promise.all(records);
}

Deno.test("a run of two DeepSpeed ranks that was killed goes on with one, after its batches were redone on two", async () => {
  await withFreshHome(async (home) => {
    const place = at({ home, store: null });
    const ranks = [
      "trainer.engine=deepspeed",
      "trainer.ranks=2",
      "trainer.zero=1",
      "checkpoints.every_rounds=10",
    ];
    const killed = await rl(["run", SMALL, ...SHORT, ...ranks, ...place, "--id", "run"], {
      HOLDFAST_FAULT: "kill:engine@append:30",
    });
    strictEqual(killed.signal, "SIGKILL", killed.output);
    const resumed = await rl(["resume", "run", "trainer.ranks=1", ...place], {});
    strictEqual(resumed.code, 0, resumed.output);
    const { recoveries, replans, ledger } = await show(home, "run");
    deepStrictEqual(replans, [{
      round: null,
      cause: "asked",
      field: "trainer.ranks",
      from: 2,
      to: 1,
    }]);
    const [loaded] = recoveries.filter(({ action }) =>
      action === "load_base" || action === "load_checkpoint"
    );
    const sizes = (await numericsOf(home)).map(({ world_size }) => world_size);
    const before = sizes.filter((size) => size === 2).length;
    ok(loaded && loaded.batches_redone > 0 && before > 0, JSON.stringify({ recoveries, sizes }));
    deepStrictEqual(sizes, [...Array(before).fill(2), ...Array(5 - before).fill(1)]);
    deepStrictEqual([ledger.read, ledger.pending], [24, 0]);
    strictEqual(await orphans(home), 0);
  });
});

Deno.test("a trainer without room on its device goes on with half the micro-batch, or stops if it may not", async () => {
  await withFreshHome(async (home) => {
    const place = at({ home, store: null });
    const oom = { HOLDFAST_FAULT: "oom:trainer@op:11" };
    const refused = await rl(
      ["run", SMALL, ...SHORT, "recovery.allow_replan=false", ...place, "--id", "refused"],
      oom,
    );
    strictEqual(refused.code, 3, refused.output);
    ok(refused.output.includes("recovery.allow_replan is false"), refused.output);
    ok(
      refused.output.includes("resume refused trainer.micro_batch_tokens_max=2048"),
      refused.output,
    );
    const done = await rl(["run", SMALL, ...SHORT, ...place, "--id", "run"], oom);
    strictEqual(done.code, 0, done.output);
    const { replans } = await show(home, "run");
    deepStrictEqual(replans.map(({ cause, from, to }) => [cause, from, to]), [[
      "out_of_memory",
      4096,
      2048,
    ]]);
    const cuts = (await numericsOf(home)).map(({ micro_batch_tokens_max }) =>
      micro_batch_tokens_max
    );
    const before = cuts.filter((tokens) => tokens === 4096).length;
    ok(before > 0 && before < 5, JSON.stringify(cuts));
    deepStrictEqual(cuts, [...Array(before).fill(4096), ...Array(5 - before).fill(2048)]);
    const resumed = await rl(
      ["resume", "refused", "trainer.micro_batch_tokens_max=1024", ...place],
      {},
    );
    strictEqual(resumed.code, 0, resumed.output);
  });
});
