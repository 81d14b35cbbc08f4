import { deepStrictEqual, notStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { SHIPPED } from "../../flows/mod.ts";
import { FakeTrainer } from "../../testing/mod.ts";
import { createRun, forkRun, type ForkRunOptions, type Home } from "../../runs/mod.ts";
import { preference } from "../../flows/preference.ts";
import { executeFake, freshFakeHome } from "../runs/fake_home.ts";
import { pairsOf, preferenceConfig } from "./preference_fixtures.ts";

const LOSS = "def loss(x, c):\n    return {}\n";
const ROWS = { train: pairsOf(8), eval: pairsOf(4) };

/** A run of six rounds that is done. */
async function parent(): Promise<{ home: Home; whole: Awaited<ReturnType<typeof executeFake>> }> {
  const home = await freshFakeHome();
  await Deno.writeTextFile(`${home.dir}/eval.jsonl`, "");
  const [train, held] = ["train", "eval"].map((name) => [{ path: `${home.dir}/${name}.jsonl` }]);
  const config = preferenceConfig(`${home.dir}/model`, { rounds: 6, data: { train, eval: held } });
  await createRun(home, preference, { config, id: "a", entry: `${SHIPPED}preference` });
  const whole = await executeFake(home, "a", { rows: ROWS });
  strictEqual(whole.status, "done");
  return { home, whole };
}

async function fork(home: Home, options: ForkRunOptions) {
  await forkRun(home, (await home.store.head("a"))!, options);
  return await executeFake(home, options.id!, { rows: ROWS });
}

Deno.test("preference ends the same in an unchanged fork from any round", async () => {
  const { home, whole } = await parent();
  for (let round = 0; round <= 6; round++) {
    const ended = await fork(home, { round, id: `b${round}` });
    deepStrictEqual([ended.status, ended.version, ended.digest], [
      "done",
      whole.version,
      whole.digest,
    ]);
  }
});

Deno.test("a preference fork uses an algorithm's file as it is now, and evaluates the start by it", async () => {
  const home = await freshFakeHome();
  const source = `${home.dir}/mine.py`;
  await Deno.writeTextFile(`${home.dir}/eval.jsonl`, "");
  await Deno.writeTextFile(source, LOSS);
  const [train, held] = ["train", "eval"].map((name) => [{ path: `${home.dir}/${name}.jsonl` }]);
  const config = preferenceConfig(`${home.dir}/model`, {
    rounds: 6,
    data: { train, eval: held },
    algorithm: { name: "python", source },
  });
  await createRun(home, preference, { config, id: "a", entry: `${SHIPPED}preference` });
  const describes = { inputs: ["logp", "ref_logp"], needs: null, pairs: true, group_min: 1 };
  const run = (id: string) => {
    const trainer = new FakeTrainer({ artifacts: home.artifacts, describes });
    return executeFake(home, id, { rows: ROWS, trainer });
  };
  const whole = await run("a");
  strictEqual(whole.status, "done");
  await Deno.writeTextFile(source, `${LOSS}# edited\n`);
  for (const round of [0, 3]) {
    const id = `b${round}`;
    await forkRun(home, (await home.store.head("a"))!, { round, id });
    const ended = await run(id);
    strictEqual(ended.status, "done");
    notStrictEqual(ended.version, whole.version);
    const callsOf = (op: string) =>
      new Set(
        ended.trainer.calls.filter((one) => one.op === op)
          .map(({ key }) => key),
      );
    deepStrictEqual([callsOf("open_algorithm").size, callsOf("evaluate").size], [1, 2]);
  }
});

Deno.test("a preference fork may change the loss, and not the draw of pairs", async () => {
  const { home, whole } = await parent();
  const harder = await fork(home, {
    round: 3,
    id: "harder",
    overrides: ["algorithm.beta=0.5", "trainer.micro_batch_tokens_max=64"],
  });
  strictEqual(harder.status, "done");
  notStrictEqual(harder.version, whole.version);
  const redone = harder.trainer.calls.filter(({ op }) => op === "train").map(({ args }) =>
    (args as { loss: { sha256: string } }).loss.sha256
  );
  deepStrictEqual(redone.map((loss) => redone.indexOf(loss)), [0, 0, 0, 3, 3, 3]);
  const overrides = [
    "pairs_per_round=4",
    "model.seed=5",
    "evaluate.pairs=2",
    "reference.offload=true",
  ];
  const other = fork(home, { round: 3, id: "other", overrides });
  const fixed =
    /has fixed:\n +pairs_per_round: the next draw[^]*model: every[^]*reference: held-out[^]*evaluate: the start/;
  await rejects(other, fixed);
});
