/**
 * Real input, end to end, as a user runs it: SmolLM2-135M-Instruct on GSM8K, killed in round 2
 * while a slab is being generated, and resumed; every version, publication and ledger entry is
 * looked at, and the final model is opened.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { VersionRecord } from "../../data/mod.ts";
import { ArtifactStore, type JournalRow, type RowKind, SqliteStore } from "../../engine/mod.ts";
import { ensureEnvironment, environmentKind } from "../../workers/mod.ts";
import { orphans, rl, show } from "../crash/runs.ts";
import { safetensorsDigest } from "./safetensors_digest.ts";
import { type RealInput, runPython, smollm2 } from "./smollm2.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const CONFIG = "configs/gsm8k_grpo.yaml";
export const RUN = "gsm8k";
const ROUNDS = 3;
const PROMPTS = 4;
const SLAB_GROUPS = 2; // Two slabs a round, so that a kill can find one finished and one under way.
const PROBLEMS = 8;
const LOOK_MS = 200;

/**
 * What differs between machines: the settings, and the numerics that every version must then carry.
 */
export type Setting = {
  input: RealInput;
  /** Added to the settings that all have. */
  overrides: string[];
  numerics: { engine: "torch" | "deepspeed"; zero: number; world_size: number; dtype: string };
};

function settings(model: string, { input: { train, test }, overrides }: Setting): string[] {
  return [
    `model.path=${model}`,
    `data.train.0.path=${train}`,
    `data.eval.0.path=${test}`,
    `rounds=${ROUNDS}`,
    `prompts_per_round=${PROMPTS}`,
    "samples_per_prompt=4",
    // Paid to all: such a model is rarely right, and each round must train.
    "reward.1={name: length, max: 1000, weight: 0.1}",
    `rollouts.slab_groups=${SLAB_GROUPS}`,
    `evaluate.problems=${PROBLEMS}`,
    "sampler.tokens_max=64",
    "workers.grace_s=1", // The killed engine's workers are gone when it is resumed: all is made anew.
    `checkpoints.every_rounds=${ROUNDS}`,
    ...overrides,
  ];
}

async function rowsOf(home: string, ...kinds: RowKind[]): Promise<JournalRow[]> {
  const store = new SqliteStore(`${home}/holdfast.db`);
  try {
    return await store.read(RUN, { kinds });
  } finally {
    await store.close();
  }
}

/** Whether a slab of `round` is finished and the next one under way. */
async function isBetweenSlabs(home: string, round: number): Promise<boolean> {
  const rows = (await rowsOf(home, "note/generation", "note/generated")).filter(({ key }) =>
    key.startsWith(`round/${round}/`)
  );
  const generated = rows.filter(({ kind }) => kind === "note/generated").length;
  return generated > 0 && rows.length - generated > generated;
}

const keysOf = (rows: JournalRow[]) => rows.map((row) => row.key);

/**
 * Starts the run and kills its engine as soon as the journal holds round 2's first slab and the
 * intent of its second.
 */
async function runUntilKilled(home: string, args: string[]): Promise<void> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--quiet",
      "cli/main.ts",
      "run",
      CONFIG,
      "--home",
      home,
      "--id",
      RUN,
      ...args,
    ],
    cwd: ROOT,
    env: { NO_COLOR: "1" },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const printed = new Response(child.stderr).text();
  let ended = false;
  child.status.then(() => ended = true);
  try {
    // Asked again and again, not watched: a watcher opens the store's files and so drops this
    // process's locks on them.
    while (!ended && !await isBetweenSlabs(home, 2)) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  } finally {
    if (!ended) child.kill("SIGKILL");
  }
  const { signal } = await child.status;
  const output = await printed;
  strictEqual(signal, "SIGKILL", `The run ended before its second round:\n${output}`);
}

/**
 * Every round made a version out of the one before, published it, and the sampler proved each
 * publication.
 */
async function checkChain(home: string, expected: Setting["numerics"]): Promise<void> {
  const versions = await rowsOf(home, "note/version");
  strictEqual(new Set(keysOf(versions)).size, 1 + ROUNDS);
  strictEqual(versions.length, 1 + ROUNDS);
  const artifacts = new ArtifactStore(`${home}/artifacts`);
  for (const [number, row] of versions.entries()) {
    const note = JSON.parse(row.value);
    strictEqual(note.number, number);
    const record = VersionRecord.parse(await artifacts.getJson(note.record));
    if (record.kind === "base") continue;
    strictEqual(record.parent, versions[number - 1]!.key);
    const { engine, zero, world_size, dtype } = record.numerics;
    deepStrictEqual({ engine, zero, world_size, dtype }, expected);
    ok(note.steps.length === 1 && note.steps[0].grad_norm > 0, `round ${number}: ${row.value}`);
  }
  const published = (await rowsOf(home, "note/publication")).map(({ key, value }) => ({
    key,
    ...JSON.parse(value),
  }));
  deepStrictEqual(
    [...new Set(published.map(({ key }) => key))],
    keysOf(versions),
    "each version, in order",
  );
  const newest = versions.map(({ key }) => published.findLast((one) => one.key === key)!);
  strictEqual(
    new Set(newest.map(({ publication }) => publication.digest)).size,
    1 + ROUNDS,
    "other weights each time",
  );
  const probes = newest.map(({ proofs }) =>
    proofs.map((proof: { probe_sha256: string }) => proof.probe_sha256)
  );
  ok(probes.every((proofs) => proofs.length === 1));
  strictEqual(
    new Set(probes.flat()).size,
    1 + ROUNDS,
    "each version was seen in the sampler's own answers",
  );
}

/** Runs, kills, resumes and verifies in `home`. */
export async function checkKilledAndResumed(home: string, setting: Setting): Promise<void> {
  const model = await smollm2(setting.input);
  await runUntilKilled(home, settings(model, setting));
  strictEqual(await orphans(home), 0, "processes outlived the killed engine");
  strictEqual((await show(home, RUN)).status, "interrupted");
  const finished = keysOf(await rowsOf(home, "note/generated"));
  const begun = keysOf(await rowsOf(home, "note/generation"));
  deepStrictEqual(begun.length, finished.length + 1, "the kill found one slab under way");

  const { code, output } = await rl(["resume", RUN, "--home", home], {});
  strictEqual(code, 0, output);
  strictEqual(await orphans(home), 0, "processes outlived the engine");

  const again = keysOf(await rowsOf(home, "note/generation")).slice(begun.length);
  deepStrictEqual(
    again.filter((key) => finished.includes(key)),
    [],
    "a finished slab was generated again",
  );
  const shown = await show(home, RUN);
  strictEqual(shown.status, "done");
  strictEqual(shown.round, ROUNDS);
  deepStrictEqual(shown.ledger, {
    read: ROUNDS * PROMPTS,
    trained: ROUNDS * PROMPTS,
    filtered: {},
    stale: 0,
    failed: {},
    pending: 0,
  });
  strictEqual(shown.generated.groups, 2 * PROBLEMS + ROUNDS * PROMPTS + SLAB_GROUPS);
  const recoveries = shown.recoveries.map(({ action, batches_redone }) =>
    `${action} ${batches_redone}`
  );
  deepStrictEqual(recoveries.toSorted(), ["load_base 1", "load_publication 0"]);
  const evaluations = shown.evaluations.map((
    { name, problems, failed },
  ) => [name, problems, failed]);
  deepStrictEqual(evaluations, [["before_greedy", PROBLEMS, 0], ["after_greedy", PROBLEMS, 0]]);
  await checkChain(home, setting.numerics);

  const final = `${home}/runs/${RUN}/final`;
  strictEqual(await safetensorsDigest(final), shown.policy.digest);
  const python = await ensureEnvironment(environmentKind(setting.numerics.engine));
  const opened = JSON.parse(
    await runPython(python, [`${ROOT}tests/e2e/open_model.py`, final], { HF_HUB_OFFLINE: "1" }),
  );
  deepStrictEqual([opened.parameters, opened.dtype], [
    134_515_008,
    `torch.${setting.numerics.dtype}`,
  ]);
  ok(opened.answer.length > 0);
}
