/** Scores the recorded samples of a run again, with other rewards. Records nothing. */
import { decodeSlab, type GroupRef } from "../../data/mod.ts";
import { InvalidInputError, removeTree, rowValue, type RunHead } from "../../engine/mod.ts";
import { GeneratedGroup, OWN_NAMES, ScoredGroup } from "../../flows/mod.ts";
import { type RewardConfig, RewardShaping, scoringFunctions } from "../../rewards/mod.ts";
import { type KeptScores, RewardScorer, type SampleScore } from "../../rollouts/mod.ts";
import type { OnEnvironmentProgress, Operator } from "../../workers/mod.ts";
import { z } from "zod";
import type { Home } from "../home/home.ts";
import { readTakenOver } from "../forks/lineage.ts";
import { compareScores, type Rescored, type RescoredSample } from "./rescored.ts";
import { RewardWorkers } from "./reward_workers.ts";
import { refuseOtherHome } from "../home/run_directories.ts";
import { currentConfig } from "../session/settings.ts";
import { workerBlocks } from "../session/worker_blocks.ts";

/** What scores a run's samples again, and which of them. */
export type RescoreOptions = {
  rewards: RewardConfig[];
  /** Only this round. */
  round?: number;
  /** Only this loop. */
  loop?: string;
  /** Called while a Python environment is created. */
  onSetup?: OnEnvironmentProgress;
  /** The reward processes; those of the run's configuration by default. */
  pool?: Operator;
};

/** Keys of the groups of a round, in any loop; with dynamic sampling, below its stage. */
const OF_ROUND = /^([^/]+)\/(\d+)\/(?:sample_until_full\/)?(generate_slab|score_group)(?:#|$)/;
/** Groups that are scored at once: servers have more to do than one group. */
const AT_ONCE = 16;

/**
 * The samples of a run's rounds, scored again. Neither the journal nor the run's files change;
 * results are kept in the home, and those that are kept already are used.
 * @throws {InvalidInputError} If there are no such samples.
 */
export async function rescoreRun(
  home: Home,
  head: RunHead,
  options: RescoreOptions,
): Promise<Rescored> {
  await refuseOtherHome(home, head);
  const groups = await recordedGroups(home, head, options);
  if (groups.length === 0) {
    const { loop, round } = options;
    const which = round === undefined ? "" : ` in ${loop ?? "any loop"}/${round}`;
    throw new InvalidInputError(
      `Cannot rescore run '${head.id}' because it has no sampled group${which}. ` +
        "Fix: name a run whose rounds sample, and a round that it has",
      { run: head.id },
    );
  }
  const config = await currentConfig(home.store, head);
  const dir = `${home.runDir(head.id)}/rescore-${crypto.randomUUID().slice(0, 8)}`;
  const { onSetup } = options;
  const work = { run: head.id, dir, artifacts: home.artifacts, onSetup };
  const workers = options.pool
    ? null
    : new RewardWorkers({ ...work, blocks: workerBlocks(config) });
  const kept = new CountedKept(home.kept);
  const pool = options.pool ?? workers;
  const scorer = new RewardScorer({ pool, artifacts: home.artifacts, kept });
  const { data: shaping } = RewardShaping.safeParse(config.reward_shaping);
  const functions = scoringFunctions(options.rewards);
  try {
    const samples: RescoredSample[] = [];
    for (let from = 0; from < groups.length; from += AT_ONCE) {
      const some = groups.slice(from, from + AT_ONCE).map((group) =>
        rescored(home, group, { scorer, functions, shaping })
      );
      samples.push(...(await Promise.all(some)).flat());
    }
    const labels = functions.map(({ name }) => name);
    return compareScores(samples, { run: head.id, labels, kept: kept.found });
  } finally {
    await workers?.stop();
    await removeTree(dir, { home: home.dir, named: OWN_NAMES.rescoring, owner: null });
  }
}

/** Counts what was found. */
class CountedKept implements KeptScores {
  found = 0;

  constructor(readonly inner: KeptScores) {}

  find(keys: readonly string[]): ReturnType<KeptScores["find"]> {
    const results = this.inner.find(keys);
    this.found += results.filter((result) => result !== null).length;
    return results;
  }

  keep(results: Parameters<KeptScores["keep"]>[0]): void {
    this.inner.keep(results);
  }
}

type Recorded = {
  loop: string;
  round: number;
  generated: GeneratedGroup;
  /** What it was scored with; absent: the run ended before. */
  scored?: ScoredGroup;
};

async function recordedGroups(
  home: Home,
  head: RunHead,
  { loop, round }: Pick<RescoreOptions, "loop" | "round">,
): Promise<Recorded[]> {
  const query = { kinds: ["result" as const] };
  const rows = [
    ...await readTakenOver(home.store, head, query),
    ...await home.store.read(head.id, query),
  ];
  const groups = new Map<string, Recorded>();
  for (const row of rows) {
    const [, in_loop = "", number, stage] = OF_ROUND.exec(row.key) ?? [];
    if (stage === undefined || (loop ?? in_loop) !== in_loop) continue;
    if (round !== undefined && Number(number) !== round) continue;
    const { output } = await rowValue(home.artifacts, row) as { output: unknown };
    if (stage === "generate_slab") {
      for (const generated of z.array(GeneratedGroup).parse(output)) {
        groups.set(nameOf(generated.group), { loop: in_loop, round: Number(number), generated });
      }
      continue;
    }
    const scored = ScoredGroup.parse(output);
    const group = groups.get(nameOf(scored.group));
    if (group) group.scored = scored;
  }
  return [...groups.values()];
}

/** A group is scored where it lies, whichever key it has. */
function nameOf({ slab, index }: GroupRef): string {
  return `${slab.sha256} ${index}`;
}

type Scoring =
  & Pick<Parameters<RewardScorer["score"]>[0], "functions" | "shaping">
  & { scorer: RewardScorer };

async function rescored(
  home: Home,
  { loop, round, generated, scored }: Recorded,
  { scorer, ...how }: Scoring,
): Promise<RescoredSample[]> {
  const { slab, index, draw } = generated.group;
  const group = decodeSlab(await home.artifacts.get(slab)).groups[index]!;
  const trajectories = generated.group.samples.map((sample) => group.trajectories[sample]!);
  const work = { ...how, prompt: group.prompt_text, row: generated.row, trajectories };
  const scores = await scorer.score(work, {
    key: `rescore/${loop}/${round}/${draw}`,
    attempt: 1,
    signal: new AbortController().signal,
    record: () => Promise.resolve(),
  });
  return scores.map((score: SampleScore, i) => {
    const sample = generated.group.samples[i]!;
    const at = scored?.group.samples.indexOf(sample) ?? -1;
    const before = at < 0 ? null : scored!.rewards[at]!;
    const { reward: after, parts, failed, detail } = score;
    return { loop, round, draw, sample, before, after, parts, failed, detail };
  });
}
