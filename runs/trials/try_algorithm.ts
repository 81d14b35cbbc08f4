import { recordedConfig } from "../session/settings.ts";
import { z } from "zod";
import {
  type AlgorithmChoice,
  creditOf,
  expressionsOf,
  inPython,
  maskedOf,
  readsParts,
  titleOf,
} from "../../algs/mod.ts";
import { type ArtifactRef, Batch } from "../../data/mod.ts";
import { InvalidInputError, type JournalRow, rowValue, type RunHead } from "../../engine/mod.ts";
import { type OnEnvironmentProgress, PYTHON_ROOT, workerEnvironment } from "../../workers/mod.ts";
import { baseOpening } from "../session/base_opening.ts";
import type { Home } from "../home/home.ts";
import { readTakenOver } from "../forks/lineage.ts";
import { creditRound, rewardParts, RoundTokens, ScoredGroup, sourceOf } from "../../flows/mod.ts";
import { RewardConfig } from "../../rewards/mod.ts";
import { trainerPythonOf } from "../session/trainer_python.ts";

type TryOptions = {
  round: number;
  algorithm: AlgorithmChoice;
  /** A model directory that computes the log-probabilities; null: those of the batch. */
  model: string | null;
  json: boolean;
  onSetup?: OnEnvironmentProgress;
};

/**
 * Runs credit and loss of an algorithm on a recorded round of a run, in one process of the
 * run's Python that shares this one's standard input and output, so `breakpoint()` works. Returns its exit code; the
 * run is not touched.
 * @throws {InvalidInputError} If the round has trained nothing.
 */
export async function tryAlgorithm(
  home: Home,
  head: RunHead,
  options: TryOptions,
): Promise<number> {
  const { round, algorithm, model, json } = options;
  const recorded = await recordedRound(home, head, options);
  const file = inPython(algorithm);
  const job = {
    json,
    model,
    opening: await baseOpening(home, head),
    batch: recorded.batch,
    round: { ...recorded.round, ...recorded.parts },
    draws: recorded.draws,
    artifacts_dir: home.artifacts.dir,
    masked: maskedOf(algorithm, recorded.round).flatMap((masked, place) => masked ? [place] : []),
    title: `${titleOf(algorithm)} on round ${round} of ${head.id}`,
    ...(file
      ? { python: { ...await sourceOf({ ...algorithm, sha256: null }), file: algorithm.source } }
      : { assigned: assignedOf(algorithm, recorded), losses: expressionsOf(algorithm) }),
  };
  const python = await trainerPythonOf(home, head, { onProgress: options.onSetup });
  const path = await Deno.makeTempFile({ prefix: "holdfast-try-", suffix: ".json" });
  try {
    await Deno.writeTextFile(path, JSON.stringify(job));
    const child = new Deno.Command(python, {
      args: ["-m", "holdfast_worker.trainer.try_batch", path],
      clearEnv: true,
      env: { ...workerEnvironment(), PYTHONPATH: PYTHON_ROOT, OMP_NUM_THREADS: "1" },
      stdin: "inherit",
      stdout: "inherit",
      stderr: "inherit",
    }).spawn();
    return (await child.status).code;
  } finally {
    await Deno.remove(path);
  }
}

/** @throws {InvalidInputError} If credit needs what the round has not recorded. */
function assignedOf(
  algorithm: AlgorithmChoice,
  { round, inputs, parts }: Awaited<ReturnType<typeof recordedRound>>,
) {
  try {
    return creditOf(algorithm, { ...round, ...inputs, ...parts });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new InvalidInputError(`${error.message}. Try it on a round of a run that scored it`, {
      ...round,
    });
  }
}

/** A round as credit saw it, and the resulting batch. `draws` [N]: the draw of each sequence. */
async function recordedRound(
  { store, artifacts }: Home,
  head: RunHead,
  { round, algorithm }: Pick<TryOptions, "round" | "algorithm">,
) {
  const query = { kinds: ["result" as const] };
  const rows = [...await readTakenOver(store, head, query), ...await store.read(head.id, query)];
  const ofRound = rows.filter(({ key }) => key.startsWith(`round/${round}/`));
  const outputOf = async (row: JournalRow) =>
    (await rowValue(artifacts, row) as { output: unknown }).output;
  const output = async (name: string) => {
    const row = ofRound.find(({ key }) => nameOf(key) === name);
    return row && await outputOf(row);
  };
  const credit = await output("assign_credit") as { batch: ArtifactRef | null } | undefined;
  if (!credit?.batch) {
    const learns = credit
      ? "that round has no training batch"
      : "it learns from no rewards, so there is no credit to try";
    const why = ofRound.length === 0 ? "it has recorded no such round" : learns;
    throw new InvalidInputError(
      `Cannot try a loss on round ${round} of run '${head.id}' because ${why}`,
      { round },
    );
  }
  const batch = Batch.parse(await artifacts.getJson(credit.batch));
  if (batch.kind !== "trajectories") {
    throw new InvalidInputError("Cannot try credit on a batch without rewards");
  }
  const scored = new Map<number, ScoredGroup>();
  for (
    const row of rows.filter(({ key }) => nameOf(key) === "score_group" && key.startsWith("round/"))
  ) {
    if (!isUpTo(row.key, round)) continue;
    const group = ScoredGroup.parse(await outputOf(row));
    scored.set(group.group.draw, group);
  }
  const groups = batch.groups.map(({ draw }) => scored.get(draw)!);
  const columns = Object.entries(batch.columns).flatMap(([name, column]) =>
    column.kind === "token" ? [[name, column.artifact] as const] : []
  );
  const values = await output("score_values") as Record<string, ArtifactRef> | undefined;
  const seen = creditRound(groups);
  const inputs = await new RoundTokens(groups, artifacts).columns({
    ...Object.fromEntries(columns),
    ...values,
  }, seen);
  const { data } = z.object({ reward: z.array(RewardConfig) }).safeParse(
    recordedConfig(head),
  );
  const parts = data && readsParts(algorithm) ? { parts: rewardParts(groups, data.reward) } : {};
  const draws = groups.flatMap(({ group, rewards }) => rewards.map(() => group.draw));
  return {
    batch: credit.batch,
    round: seen,
    draws,
    inputs: { ...inputs, coef: batch.coef },
    parts,
  };
}

/** `round/3/score_group#draw-7`: score_group. */
function nameOf(key: string): string {
  return key.split("/").at(-1)!.split("#")[0]!;
}

/** Leftover groups belong to an earlier round. */
function isUpTo(key: string, round: number): boolean {
  return Number(key.split("/")[1]) <= round;
}
