import { isFromSources, type Row, type Trajectory } from "../data/mod.ts";
import { type ArtifactStore, InfrastructureError } from "../engine/mod.ts";
import type { ScoringFunction } from "../rewards/mod.ts";
import {
  argumentsOf,
  type Caller,
  callOptions,
  type Operator,
  rewardRole,
  RoleWorkers,
  type ScoredItem,
  type Turns,
} from "../workers/mod.ts";
import { combineScores, combineTokens, type Shaped, type Shaping } from "./combine_scores.ts";
import { type Identity, type KeptScore, type KeptScores, scoreKeys } from "./kept_scores.ts";

/** @internal */
type ScoredSample = Parameters<ScoringFunction["score"]>[0];

/** Why a sample has no score although nothing failed: a function had nothing to grade it by. */
export const UNGRADED = "reward_none";

/**
 * What one reward function returned for one sample: a score, or why there is none. A failure is
 * never a zero.
 */
type Outcome =
  | { score: number; metrics?: Record<string, number>; token_scores?: number[] }
  | { failed: string; detail: string };

/**
 * A sample's reward is what {@linkcode combineScores} makes of its scores; `parts`
 * has each score, paid or not, and the numbers returned with it as NAME/NUMBER. It has no reward if
 * one failed, which `failed` names, or if none applies: `UNGRADED`.
 */
export type SampleScore = {
  reward: number | null;
  parts: Record<string, number>;
  failed: string | null;
  detail: string | null;
  /** What each token after the prompt earns of the reward; absent: no reward says it. */
  token_rewards?: number[];
};

/**
 * Scores samples: engine rewards immediately, process rewards in the reward group's pool with a
 * hard time limit.
 */
export class RewardScorer {
  readonly #pool: RoleWorkers<typeof rewardRole> | null;
  readonly #artifacts: Pick<ArtifactStore, "put">;
  readonly #kept: KeptScores | null;
  /** What the reward worker said of functions. */
  readonly #identities = new Map<string, Identity>();

  /**
   * `pool`: the `reward` worker group, null if no configured reward needs a process. `artifacts`:
   * for long rows. `kept`: where results are kept; absent: nowhere. `turns`: of everybody who calls
   * the group; absent: nobody else does.
   */
  constructor(
    options: {
      pool: Operator | null;
      artifacts: Pick<ArtifactStore, "put">;
      kept?: KeptScores | null;
      turns?: Turns;
    },
  ) {
    this.#kept = options.kept ?? null;
    this.#pool = options.pool && new RoleWorkers(rewardRole, [options.pool], options.turns);
    this.#artifacts = options.artifacts;
  }

  /**
   * Scores a group's trajectories, in their order. A failed one has a reason instead of a reward.
   */
  async score(
    group: {
      functions: ScoringFunction[];
      prompt: string;
      row: Row;
      trajectories: Trajectory[];
      shaping?: Shaping;
    },
    options: Caller & { signal: AbortSignal },
  ): Promise<SampleScore[]> {
    const samples = group.trajectories.map((trajectory): ScoredSample => ({
      prompt: group.prompt,
      completion: trajectory.text,
      row: group.row.columns,
      answer: group.row.answer,
      tokens: trajectory.action_mask.reduce((sum, bit) => sum + bit, 0),
      signal: options.signal,
    }));
    const columns = await Promise.all(
      group.functions.map((f) => {
        if (!isFromSources(group.row.row_id, f.sources)) {
          const detail = `${f.name}: it applies only to rows of ${f.sources!.join(", ")}`;
          return samples.map((): Outcome => ({ failed: UNGRADED, detail }));
        }
        return this.#outcomes(f, { ...group, samples }, options);
      }),
    );
    options.signal.throwIfAborted(); // What was cut off has not failed.
    const { shaping } = group;
    return samples.map(({ tokens }, i) => {
      const { stop } = group.trajectories[i]!;
      const outcomes = columns.map((column) => column[i]!);
      return combine(group.functions, outcomes, { stop, tokens, shaping });
    });
  }

  /** What a function gives each sample: what was kept, and what it is asked for. */
  async #outcomes(f: ScoringFunction, group: ForPool, options: Caller): Promise<Outcome[]> {
    const kept = this.#kept;
    const identity = kept && await this.#identityOf(f, options);
    if (kept === null || identity === null) return await this.#askPool(f, group, options);
    const row = { row_id: group.row.row_id, ...forFunction(group) };
    const keys = scoreKeys(identity, {
      row,
      samples: itemsOf(group).map(({ id: _, ...item }) => item),
    });
    const found = kept.find(keys);
    const lacks = identity.unit === "group" ? found.includes(null) : null;
    const places = keys.flatMap((_, i) => lacks ?? found[i] === null ? [i] : []);
    const outcomes = found.map((known): Outcome =>
      known !== null && known.score !== null
        ? { ...known, score: known.score }
        : { failed: UNGRADED, detail: `${f.name}: there is nothing to grade by` }
    );
    if (places.length === 0) return outcomes;
    const part = {
      ...group,
      samples: places.map((i) => group.samples[i]!),
      trajectories: places.map((i) => group.trajectories[i]!),
    };
    const scored = await this.#askPool(f, part, options, (place, result, code) => {
      // A process that was started later may have imported other code.
      if (code === identity.code) kept.keep([[keys[places[place]!]!, result]]);
    });
    for (const [at, i] of places.entries()) outcomes[i] = scored[at]!;
    return outcomes;
  }

  /** By what a function's results are kept; null: they are not. */
  async #identityOf(
    { name, kept, source, style, settings, process }: ScoringFunction,
    options: Caller,
  ): Promise<Identity | null> {
    if (kept === undefined) return null;
    if (kept.code !== null) return { code: kept.code, unit: "sample" };
    const imported = importedBy({ source, style, settings, process });
    const key = JSON.stringify(imported);
    const known = this.#identities.get(key);
    if (known !== undefined) return known;
    const { pool, caller } = this.#called(name, options);
    const callOptions = { ...caller, key: `${caller.key}/identify` };
    const { answers: [identity] } = await pool.ask("identify", imported, callOptions);
    this.#identities.set(key, identity);
    return identity;
  }

  async #askPool(
    f: ScoringFunction,
    group: ForPool,
    options: Caller,
    keep: Keep = () => {},
  ): Promise<Outcome[]> {
    if (f.runs_on === "engine") return await here(f, group.samples, keep);
    const results = await this.#answered(f, group, this.#called(f.name, options));
    return group.samples.map((_, i): Outcome => {
      const result = results.find(({ id }) => id === String(i));
      if (result?.outcome === "none") keep(i, { score: null, metrics: {} }, result.code);
      if (result?.outcome === "ok" && result.score !== null) {
        const { score, metrics, code, token_scores } = result;
        const sampleScore = { score, metrics, token_scores };
        keep(i, sampleScore, code);
        return sampleScore;
      }
      const outcome = result?.outcome === "ok" ? "no_score" : result?.outcome ?? "missing";
      return { failed: `reward_${outcome}`, detail: `${f.name}: ${result?.error ?? "no detail"}` };
    });
  }

  /** The pool, and how it is called for a function. */
  #called(name: string, options: Caller): Called {
    if (this.#pool === null) {
      throw new InfrastructureError(
        `Cannot score with '${name}' because no reward processes were started`,
        { reward: name },
      );
    }
    const caller = {
      ...callOptions(options),
      key: `${options.key}/${name}`,
      record: (...row: Parameters<Caller["record"]>) => options.record(...row),
    };
    return { pool: this.#pool, caller };
  }

  async #answered(
    { name, source, process, style, settings, timeout_ms, model }: ScoringFunction,
    group: ForPool,
    { pool, caller }: Called,
  ): Promise<ScoredItem[]> {
    const sharing = async (op: string, shared: unknown) =>
      await argumentsOf(shared, { op, group: "reward", artifacts: this.#artifacts });
    if (model !== undefined) {
      // The prompt before any template, because the model has its own.
      const { prompt, tools } = group.row;
      const shared = await sharing("score_by_model", { prompt, tools });
      const args = { model, shared, items: itemsOf(group) };
      return (await pool.ask("score_by_model", args, caller)).answers[0].results;
    }
    if (source === null || process === undefined) {
      throw new TypeError(
        `Cannot score with '${name}' in a process because it has neither a function nor a model`,
      );
    }
    const args = {
      ...importedBy({ source, style, settings, process }),
      timeout_ms,
      shared: await sharing("score", forFunction(group)),
      items: itemsOf(group),
    };
    return (await pool.ask("score", args, caller)).answers[0].results;
  }
}

type Called = { pool: RoleWorkers<typeof rewardRole>; caller: Caller };

/** By what the pool imports a function. */
function importedBy(
  { source, style, settings, process }: Pick<
    ScoringFunction,
    "source" | "style" | "settings" | "process"
  >,
) {
  return {
    function: source!,
    style: style ?? null,
    settings: settings === undefined ? null : JSON.stringify(settings),
    process: process!,
  };
}

/** Learns a result as soon as it is there. `code`: what gave it. */
type Keep = (place: number, result: KeptScore, code: string | undefined) => void;

/** A group, and its trajectories as functions see them. */
type ForPool = { prompt: string; row: Row; trajectories: Trajectory[]; samples: ScoredSample[] };

/** What the completions have in common for a Python function. */
function forFunction(
  { prompt, row: { prompt: row_prompt, columns, answer }, trajectories }: ForPool,
) {
  const [first] = trajectories;
  const prompt_ids = first ? Array.from(first.tokens.subarray(0, promptLength(first))) : [];
  return { prompt, row_prompt, prompt_ids, columns, answer };
}

function itemsOf({ trajectories, samples }: ForPool) {
  return trajectories.map((trajectory, i) => ({
    id: String(i),
    completion: trajectory.text,
    tokens: samples[i]!.tokens,
    token_ids: Array.from(trajectory.tokens.subarray(promptLength(trajectory))),
    stop: trajectory.stop,
  }));
}

/** The tokens before the first sampled one. */
function promptLength({ action_mask }: Trajectory): number {
  return Math.max(action_mask.indexOf(1), 0);
}

/** An engine reward is pure: a throw is final, because a second call would throw again. */
async function here(
  f: ScoringFunction,
  samples: ScoredSample[],
  keep: Keep,
): Promise<Outcome[]> {
  return await Promise.all(samples.map(async (sample, i): Promise<Outcome> => {
    try {
      const scored = await f.score(sample);
      const { score, metrics = {} } = typeof scored === "object" && scored !== null
        ? scored
        : { score: scored };
      keep(i, { score, metrics }, f.kept?.code ?? undefined);
      if (scored === null) {
        return { failed: UNGRADED, detail: `${f.name}: the row has nothing to grade by` };
      }
      return typeof scored === "number" ? { score: scored } : scored;
    } catch (error) {
      return {
        failed: "reward_error",
        detail: `${f.name}: ${error instanceof Error ? error.message : String(error)}`,
      };
    }
  }));
}

function combine(functions: ScoringFunction[], outcomes: Outcome[], sample: Shaped): SampleScore {
  const unscored = outcomes.flatMap((outcome) => ("failed" in outcome ? [outcome] : []));
  const failure = unscored.find(({ failed }) => failed !== UNGRADED);
  const parts = Object.fromEntries(functions.flatMap(({ name }, i): [string, number][] => {
    const outcome = outcomes[i]!;
    if (!("score" in outcome)) return [];
    const { score, metrics = {} } = outcome;
    return [
      [name, score],
      ...Object.entries(metrics).map(([of, n]): [string, number] => [`${name}/${of}`, n]),
    ];
  }));
  const reward = failure ? null : combineScores(functions, parts, sample);
  if (reward !== null) {
    const scored = functions.flatMap(({ name }, i): [string, number[]][] => {
      const outcome = outcomes[i]!;
      return "score" in outcome && outcome.token_scores ? [[name, outcome.token_scores]] : [];
    });
    const token_rewards = combineTokens(functions, parts, Object.fromEntries(scored));
    const whole = { reward, parts, failed: null, detail: null };
    return token_rewards === null ? whole : { ...whole, token_rewards };
  }
  const { failed, detail } = (failure ?? unscored[0])!;
  return { reward: null, parts: {}, failed, detail };
}
