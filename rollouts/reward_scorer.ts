import type { Row, Trajectory } from "../data/mod.ts";
import { type ArtifactStore, InfrastructureError } from "../engine/mod.ts";
import {
  argumentsOf,
  type Caller,
  callOptions,
  type Operator,
  type RewardModelSettings,
  type RewardProcess,
  rewardRole,
  RoleWorkers,
  type ScoredItem,
} from "../workers/mod.ts";

/**
 * One configured reward as the scorer needs it; the rewards room creates it from a configuration
 * entry.
 */
export interface ScoringFunction {
  /** The reward, as metrics name it. */
  readonly name: string;
  /** Factor of its score in the sum. */
  readonly weight: number;
  /**
   * Paid only to samples that the function of this name scores above 0; absent: to every sample.
   */
  readonly when?: string;
  /** `process`: in a pool, with a hard limit. */
  readonly runs_on: "engine" | "process";
  /** For `process`: what the reward worker imports, `path.py:function`. */
  readonly source: string | null;
  /** For one sample. */
  readonly timeout_ms: number;
  /** With `source`: what the function's processes may use. */
  readonly process?: RewardProcess;
  /**
   * For `process` in place of `source`: a reward model, which receives prompt and sampled tokens
   * instead of a row.
   */
  readonly model?: RewardModelSettings;
  /** Scores one sample. Throws for a row that cannot be scored. */
  score(sample: ScoredSample): Promise<Given> | Given;
}

/**
 * What a function returns for a sample: a score, alone or with further numbers; null: there is
 * nothing to grade by.
 * @internal
 */
type Given = number | { score: number; metrics?: Record<string, number> } | null;

/** @internal */
type ScoredSample = {
  prompt: string;
  completion: string;
  row: Record<string, unknown>;
  answer: string | undefined;
  tokens: number;
  signal: AbortSignal;
};

/** Why a sample has no score though nothing failed: a function had nothing to grade it by. */
export const UNGRADED = "reward_none";

/**
 * What one reward function returned for one sample: a score, or why there is none. A failure is
 * never a zero.
 */
type Outcome = { score: number; metrics?: Record<string, number> } | {
  failed: string;
  detail: string;
};

/**
 * A sample's reward is the sum of weight x score over what is paid; `parts` has each score, paid
 * or not, and the numbers beside it as NAME/NUMBER. It has no reward if a function gave no score;
 * `failed` names the first that failed, else `UNGRADED`.
 */
export type SampleScore = {
  reward: number | null;
  parts: Record<string, number>;
  failed: string | null;
  detail: string | null;
};

/**
 * Scores samples: engine rewards here and now, process rewards in the reward group's pool with a
 * hard time limit.
 */
export class RewardScorer {
  readonly #pool: RoleWorkers<typeof rewardRole> | null;
  readonly #artifacts: Pick<ArtifactStore, "put">;

  /**
   * `pool`: the `reward` worker group, null if no configured reward needs a process. `artifacts`:
   * for long rows.
   */
  constructor(options: { pool: Operator | null; artifacts: Pick<ArtifactStore, "put"> }) {
    this.#pool = options.pool && new RoleWorkers(rewardRole, [options.pool]);
    this.#artifacts = options.artifacts;
  }

  /**
   * Scores a group's trajectories, in their order. A failed one has a reason instead of a reward.
   */
  async score(
    group: { functions: ScoringFunction[]; prompt: string; row: Row; trajectories: Trajectory[] },
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
        if (f.runs_on === "engine") return here(f, samples);
        return this.#pooled(f, { ...group, samples }, options);
      }),
    );
    return samples.map((_, i) => combine(group.functions, columns.map((column) => column[i]!)));
  }

  async #pooled(f: ScoringFunction, group: ForPool, options: Caller): Promise<Outcome[]> {
    if (this.#pool === null) {
      throw new InfrastructureError(
        `Cannot score with '${f.name}' because no reward processes were started`,
        {
          reward: f.name,
        },
      );
    }
    const caller = {
      ...callOptions(options),
      key: `${options.key}/${f.name}`,
      record: (...row: Parameters<Caller["record"]>) => options.record(...row),
    };
    const results = await this.#answered(f, group, { pool: this.#pool, caller });
    return group.samples.map((_, i): Outcome => {
      const result = results.find(({ id }) => id === String(i));
      if (result?.outcome === "ok" && result.score !== null) {
        return { score: result.score, metrics: result.metrics };
      }
      const outcome = result?.outcome === "ok" ? "no_score" : result?.outcome ?? "missing";
      return { failed: `reward_${outcome}`, detail: `${f.name}: ${result?.error ?? "no detail"}` };
    });
  }

  async #answered(
    { name, source, process, timeout_ms, model }: ScoringFunction,
    group: ForPool,
    { pool, caller }: { pool: RoleWorkers<typeof rewardRole>; caller: Caller },
  ): Promise<ScoredItem[]> {
    const sharing = async (op: string, shared: unknown) =>
      await argumentsOf(shared, { op, group: "reward", artifacts: this.#artifacts });
    if (model !== undefined) {
      const { shared, items } = forModel(group);
      const args = { model, shared: await sharing("score_by_model", shared), items };
      return (await pool.ask("score_by_model", args, caller)).answers[0].results;
    }
    if (source === null || process === undefined) {
      throw new TypeError(
        `Cannot score with '${name}' in a process because it has neither a function nor a model`,
      );
    }
    const { shared, items } = forFunction(group);
    const args = {
      function: source,
      process,
      timeout_ms,
      shared: await sharing("score", shared),
      items,
    };
    return (await pool.ask("score", args, caller)).answers[0].results;
  }
}

/** A group, and its trajectories as functions see them. */
type ForPool = { prompt: string; row: Row; trajectories: Trajectory[]; samples: ScoredSample[] };

/**
 * What a Python function receives: what the samples have in common, which goes once, and the rest
 * of each.
 */
function forFunction({ prompt, row, samples }: ForPool) {
  return {
    shared: { prompt, row: { ...row.columns, answer: row.answer } },
    items: samples.map(({ completion, tokens }, i) => ({ id: String(i), completion, tokens })),
  };
}

/**
 * What a reward model receives: the prompt before any template, because it has its own, and
 * everything after it.
 */
function forModel({ row, trajectories }: ForPool) {
  const items = trajectories.map(({ text, tokens, action_mask }, i) => ({
    id: String(i),
    completion: text,
    token_ids: Array.from(tokens.subarray(Math.max(action_mask.indexOf(1), 0))),
  }));
  return { shared: { prompt: row.prompt }, items };
}

/** An engine reward is pure: a throw is final, because a second call would throw again. */
async function here(f: ScoringFunction, samples: ScoredSample[]): Promise<Outcome[]> {
  return await Promise.all(samples.map(async (sample): Promise<Outcome> => {
    try {
      const given = await f.score(sample);
      if (given === null) {
        return { failed: UNGRADED, detail: `${f.name}: the row has nothing to grade by` };
      }
      return typeof given === "number" ? { score: given } : given;
    } catch (error) {
      return {
        failed: "reward_error",
        detail: `${f.name}: ${error instanceof Error ? error.message : String(error)}`,
      };
    }
  }));
}

function combine(functions: ScoringFunction[], outcomes: Outcome[]): SampleScore {
  const unscored = outcomes.flatMap((outcome) => ("failed" in outcome ? [outcome] : []));
  const failure = unscored.find(({ failed }) => failed !== UNGRADED) ?? unscored[0];
  if (failure) return { reward: null, parts: {}, failed: failure.failed, detail: failure.detail };
  const scored = outcomes.flatMap((outcome) => ("score" in outcome ? [outcome] : []));
  const parts = functions.flatMap(({ name }, i): [string, number][] => {
    const { score, metrics = {} } = scored[i]!;
    return [
      [name, score],
      ...Object.entries(metrics).map(([of, n]): [string, number] => [`${name}/${of}`, n]),
    ];
  });
  const scoreOf = (name: string) => scored[functions.findIndex((f) => f.name === name)]!.score;
  return {
    reward: functions.reduce(
      (sum, { weight, when }, i) =>
        when === undefined || scoreOf(when) > 0 ? sum + weight * scored[i]!.score : sum,
      0,
    ),
    parts: Object.fromEntries(parts),
    failed: null,
    detail: null,
  };
}
