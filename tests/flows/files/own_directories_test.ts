import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { BadDataError, type Outcome } from "../../../engine/mod.ts";
import { FakeTrainer, type MemoryStore, writeFakeModel } from "../../../testing/mod.ts";
import { quickstart } from "../../../flows/quickstart.ts";
import { unlessMissing } from "../../../flows/files/unless_missing.ts";
import { execute, rowsOf, smallQuickstart, stores } from "../fixtures.ts";

const CONFIG = smallQuickstart({ rounds: 3, every_rounds: 1 });
const ROWS = { train: rowsOf(16), eval: rowsOf(2) };

type Used = Awaited<ReturnType<typeof stores>>;
type Result = { policy: { version: string }; exported: { digest: string } };

async function start(
  used: Used,
  store: MemoryStore,
  trainer = new FakeTrainer(used),
): Promise<Outcome> {
  const engine = { backoff: { first_ms: 0, max_ms: 0 } };
  return (await execute(quickstart, CONFIG, { ...used, store, trainer, rows: ROWS, engine }))
    .outcome;
}

/** A run that stopped before the n-th operation of its trainer; its workers are gone. */
async function stoppedAt(used: Used, operation: number): Promise<MemoryStore> {
  const trainer = new FakeTrainer(used);
  let count = 0;
  trainer.hook = (_, moment) => {
    if (moment === "begin" && ++count === operation) {
      throw new BadDataError("Cannot continue because the test says so");
    }
  };
  const { status } = await start(used, used.store, trainer);
  strictEqual(status, "failed");
  return used.store.restarted();
}

async function withStores<T>(work: (used: Used) => Promise<T>): Promise<T> {
  const used = await stores();
  try {
    return await work(used);
  } finally {
    await Deno.remove(used.dir, { recursive: true });
  }
}

const calm = await withStores(async (used) => {
  const trainer = new FakeTrainer(used);
  const outcome = await start(used, used.store, trainer);
  ok(outcome.status === "done", JSON.stringify(outcome));
  return { ...outcome.output as Result, operations: trainer.calls.length };
});

const LOSSES: Record<string, (run: string) => Promise<void>> = {
  "runs/RUN": async (run) => {
    await Deno.remove(`${run}/../publications`, { recursive: true }).catch(unlessMissing);
    await Deno.remove(run, { recursive: true });
  },
  "the model that it made": (run) => Deno.remove(`${run}/model`, { recursive: true }),
  "an empty model": (run) => Deno.writeTextFile(`${run}/model/weights.json`, ""),
  "the warm model": (run) => Deno.remove(`${run}/warm`, { recursive: true }),
  "a torn warm model": (run) => Deno.truncate(`${run}/warm/weights.json`, 3),
  "torn publications": (run) =>
    eachPublication(run, (dir) => Deno.truncate(`${dir}/weights.json`, 3)),
  "garbage in publications": (run) =>
    eachPublication(run, (dir) => Deno.writeTextFile(`${dir}/weights.json`, "\0{")),
  "empty publications": (run) => eachPublication(run, (dir) => Deno.remove(`${dir}/weights.json`)),
  "a file for each publication": (run) => eachPublication(run, replacedByFile),
  "a file for all publications": (run) => replacedByFile(`${run}/../publications`),
};

async function eachPublication(run: string, damage: (dir: string) => Promise<void>): Promise<void> {
  for await (const { name } of Deno.readDir(`${run}/../publications`)) {
    await damage(`${run}/../publications/${name}`);
  }
}

async function replacedByFile(dir: string): Promise<void> {
  await Deno.remove(dir, { recursive: true });
  await Deno.writeTextFile(dir, "not a directory");
}

Deno.test("a run remakes lost directories from any point, to the same digest", async () => {
  const remade = new Set<string>();
  for (const [what, lose] of Object.entries(LOSSES)) {
    for (let operation = 2; operation <= calm.operations; operation += 3) {
      await withStores(async (used) => {
        const store = await stoppedAt(used, operation);
        await lose(`${used.dir}/run`).catch(unlessMissing); // Not made yet.
        const trainer = new FakeTrainer(used);
        const outcome = await start(used, store, trainer);
        ok(
          outcome.status === "done",
          `${what} before operation ${operation}: ${JSON.stringify(outcome)}`,
        );
        const { policy, exported } = outcome.output as Result;
        deepStrictEqual([policy.version, exported.digest], [
          calm.policy.version,
          calm.exported.digest,
        ]);
        const created = trainer.calls.findIndex(({ op }) => op === "create_model");
        ok(
          created <= 0,
          `${what} before operation ${operation}: the model is made before anything opens it`,
        );
        if (trainer.calls.some(({ op }) => op === "create_model")) remade.add(what);
      });
    }
  }
  for (const what of Object.keys(LOSSES).slice(0, 3)) ok(remade.has(what), what);
});

Deno.test("a remade directory that differs is refused, with both digests", async () => {
  await withStores(async (used) => {
    const store = await stoppedAt(used, calm.operations);
    await Deno.remove(`${used.dir}/run/model`, { recursive: true });
    const trainer = new FakeTrainer(used);
    const call = trainer.call.bind(trainer);
    trainer.call = async (op, args, options) => {
      const answer = await call(op, args, options);
      if (op !== "create_model") return answer;
      const { dir } = args as { dir: string };
      const { digest } = await writeFakeModel(dir, 0.125);
      return { ...answer, outputs: [{ dir, digest }] };
    };
    const outcome = await start(used, store, trainer);
    ok(outcome.status === "failed");
    match(
      outcome.error.message,
      /Cannot recreate the files of 'create_model' because they differ: digest [0-9a-f]{64}, recorded digest/,
    );
  });
});
