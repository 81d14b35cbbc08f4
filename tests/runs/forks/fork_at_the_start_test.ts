/**
 * Forks before the first round, where nothing was drawn: what differs may be what the run failed
 * of.
 */
import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { type Row, type RowTable, tableOf } from "../../../data/mod.ts";
import { Engine } from "../../../engine/mod.ts";
import { SHIPPED } from "../../../flows/mod.ts";
import { createRun, forkRun, type Home, recordedDefinition } from "../../../runs/mod.ts";
import { preference } from "../../../flows/preference.ts";
import { fakeRun, FakeTrainer } from "../../../testing/mod.ts";
import { createFakeRun, freshFakeHome } from "../fake_home.ts";
import { pairsOf, preferenceConfig } from "../../flows/preference_fixtures.ts";

function prompts(lengths: readonly number[]): RowTable {
  const columns = { answer: "1", columns: {} };
  const rows = lengths.map((length, n): Row => ({
    row_id: `row-${n}`,
    prompt: String(n).padStart(length, "x"),
    ...columns,
  }));
  return tableOf(rows, `prompts-${lengths.join()}`);
}

type Start = { rows: Record<string, RowTable>; tokens_max?: number };

/** One engine's start at a run: how it ended. */
async function start(
  { store, artifacts, dir }: Home,
  id: string,
  { rows, tokens_max }: Start,
): Promise<string> {
  const head = (await store.head(id))!;
  const { definition, config } = await recordedDefinition(store, head);
  const restart = head.parent && head.epoch === 0 ? "fork" as const : "resume" as const;
  const trainer = new FakeTrainer({ artifacts, tokens_max });
  const places = { store, artifacts, run: id, dir: `${dir}/work/${id}`, rows };
  const { resources } = await fakeRun({ ...places, restart, trainer });
  const outcome = await new Engine({ store, artifacts, resources }).execute(
    id,
    definition.build(config),
  );
  return outcome.status === "failed" ? outcome.error.message : outcome.status;
}

const LONG = { train: prompts([4, 9, 4]), eval: prompts([3]) };

/** A home in which run `a` has failed of a prompt of 9 tokens. */
async function failed(
  bound: { prompt_tokens_max?: number; max_model_len?: number; tokens_max?: number },
): Promise<Home> {
  const home = await freshFakeHome();
  const { prompt_tokens_max, max_model_len, tokens_max } = bound;
  for (const name of ["eval", "other"]) await Deno.writeTextFile(`${home.dir}/${name}.jsonl`, "");
  const [train, held] = ["train", "eval"].map((name) => [{ path: `${home.dir}/${name}.jsonl` }]);
  await createFakeRun(home, "a", {
    data: { train, eval: held, ...(prompt_tokens_max && { prompt_tokens_max }) },
    evaluate: { problems: 1 },
    ...(max_model_len && { sampler: { max_model_len } }),
    algorithm: { name: "grpo", kl_coef: 0.1 },
    reference: { path: `${home.dir}/model` },
  });
  match(await start(home, "a", { rows: LONG, tokens_max }), /'row-1' \(9\)/);
  return home;
}

async function forked(
  home: Home,
  overrides: string[],
  rows: Record<string, RowTable> = LONG,
): Promise<string> {
  await forkRun(home, (await home.store.head("a"))!, {
    round: 0,
    id: "b",
    overrides,
    cwd: home.dir,
  });
  return await start(home, "b", { rows });
}

Deno.test("a run that failed on long prompts is forked with a remedy", async () => {
  strictEqual(
    await forked(await failed({ prompt_tokens_max: 8 }), ["data.on_long_prompt=drop"]),
    "done",
  );
  strictEqual(
    await forked(await failed({ prompt_tokens_max: 8 }), ["data.prompt_tokens_max=9"]),
    "done",
  );
  strictEqual(
    await forked(await failed({ max_model_len: 9 }), ["sampler.max_model_len=16"]),
    "done",
  );
});

Deno.test("a run that failed of a model's context is resumed with a larger one", async () => {
  const home = await failed({ tokens_max: 9 });
  strictEqual(await start(home, "a", { rows: LONG, tokens_max: 16 }), "done");
});

Deno.test("a fork reads other files, and nothing of those that its parent had", async () => {
  const home = await failed({ prompt_tokens_max: 8 });
  const rows = { train: prompts([4, 5]), eval: prompts([3]) };
  strictEqual(await forked(home, [`data.train=[{path: other.jsonl}]`], rows), "done");
  const opened = (id: string) => home.store.read(id, { kinds: ["result"], prefix: "open_data" });
  deepStrictEqual([
    (await opened("a")).length > 0,
    JSON.stringify(await opened("b")).includes(LONG.train.digest),
  ], [
    true,
    false,
  ]);
});

Deno.test("a fork with nothing that helps says what failed and what to change", async () => {
  const home = await failed({ prompt_tokens_max: 8 });
  for (const overrides of [[], ["rollouts.failed_fraction_max=0.5"]]) {
    await rejects(forked(home, overrides), (error: Error) => {
      match(
        error.message,
        /^Cannot fork run 'a' before its first round because 'bound_rows.*' failed, .* as a.b=c;.*: Cannot use the 'train' rows/,
      );
      return true;
    });
  }
});

Deno.test("a setting that rounds would fix may change before the first one", async () => {
  const home = await freshFakeHome();
  const [train, held] = ["train", "eval"].map((name) => [{ path: `${home.dir}/${name}.jsonl` }]);
  await Deno.writeTextFile(`${home.dir}/eval.jsonl`, "");
  const config = preferenceConfig(`${home.dir}/model`, { data: { train, eval: held } });
  await createRun(home, preference, { config, id: "a", entry: `${SHIPPED}preference` });
  const rows = { train: pairsOf(8), eval: pairsOf(4) };
  strictEqual(await start(home, "a", { rows }), "done");
  const overrides = [
    "evaluate.pairs=2",
    "reference.offload=true",
    "data.on_long_prompt=drop",
    "pairs_per_round=4",
  ];
  strictEqual(await forked(home, overrides, rows), "done");
});
