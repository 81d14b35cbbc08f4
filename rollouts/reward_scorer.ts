import { z } from "zod";
import type { Row, Trajectory } from "../data/mod.ts";
import { InfrastructureError } from "../engine/mod.ts";
import { type Caller, callOptions, type Operator } from "../workers/mod.ts";

/** One configured reward as the scorer needs it; the rewards room makes it from a configuration entry. */
export interface ScoringFunction {
  readonly name: string;
  readonly weight: number;
  readonly runs_on: "engine" | "process";
  /** For `process`: what the reward worker imports, `path.py:function`. */
  readonly source: string | null;
  readonly timeout_ms: number;
  /** For `process` in place of `source`: a reward model, asked with prompt and sampled tokens instead of a row. */
  readonly model?: unknown;
  score(sample: ScoredSample): Promise<number> | number;
}

export type ScoredSample = {
  prompt: string;
  completion: string;
  row: Record<string, unknown>;
  answer: string | undefined;
  tokens: number;
  signal: AbortSignal;
};

/** What one reward function gave one sample: a score, or why there is none. Never a zero in place of a failure. */
type Outcome = { score: number; metrics?: Record<string, number> } | { failed: string; detail: string };

/**
 * A sample's reward is the sum of weight x score; `parts` has each score, and the numbers beside it as NAME/NUMBER. It has
 * no reward if a function gave no score; `failed` names the first of those.
 */
export type SampleScore = {
  reward: number | null;
  parts: Record<string, number>;
  failed: string | null;
  detail: string | null;
};

/** What the reward worker answers for one item. */
const PoolResult = z.object({
  id: z.string(),
  outcome: z.string(),
  score: z.number().nullish(),
  metrics: z.record(z.string(), z.number()).nullish(),
  error: z.string().nullish(),
});

/** Scores samples: engine rewards here and now, process rewards in the reward group's pool with a hard time limit. */
export class RewardScorer {
  readonly #pool: Operator | null;

  /** `pool`: the `reward` worker group, null if no configured reward needs a process. */
  constructor(options: { pool: Operator | null }) {
    this.#pool = options.pool;
  }

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
        const items = f.model === undefined ? functionItems(samples) : modelItems(group);
        return this.#pooled(f, items, options);
      }),
    );
    return samples.map((_, i) => combine(group.functions, columns.map((column) => column[i]!)));
  }

  async #pooled(f: ScoringFunction, items: { id: string }[], options: Caller): Promise<Outcome[]> {
    if (this.#pool === null) {
      throw new InfrastructureError(`Cannot score with '${f.name}' as no reward processes were started`, {
        reward: f.name,
      });
    }
    const asked = f.model === undefined ? { function: f.source, timeout_ms: f.timeout_ms } : { model: f.model };
    const args = { ...asked, items };
    const key = `${options.key}/${f.name}`;
    const { outputs } = await this.#pool.call("score", args, { ...callOptions(options), key });
    const loss = this.#pool.takeLoss?.() ?? null;
    if (loss) {
      await options.record("recovery", key, { ...loss, action: "restart", version: null, batches_redone: 0 });
    }
    const { results } = z.object({ results: z.array(PoolResult) }).parse(outputs[0]);
    return items.map((item): Outcome => {
      const result = results.find(({ id }) => id === item.id);
      if (result?.outcome === "ok" && typeof result.score === "number") {
        return { score: result.score, metrics: result.metrics ?? {} };
      }
      const outcome = result?.outcome === "ok" ? "no_score" : result?.outcome ?? "missing";
      return { failed: `reward_${outcome}`, detail: `${f.name}: ${result?.error ?? "no detail"}` };
    });
  }
}

/** What a function in Python is told of each sample. */
function functionItems(samples: ScoredSample[]) {
  return samples.map(({ prompt, completion, tokens, row, answer }, i) => ({
    id: String(i),
    prompt,
    completion,
    tokens,
    row: { ...row, answer },
  }));
}

/** What a reward model is told: the prompt before any template, for it has its own, and everything after it. */
function modelItems({ row, trajectories }: { row: Row; trajectories: Trajectory[] }) {
  return trajectories.map(({ text, tokens, action_mask }, i) => ({
    id: String(i),
    prompt: row.prompt,
    completion: text,
    token_ids: Array.from(tokens.subarray(Math.max(action_mask.indexOf(1), 0))),
  }));
}

/** An engine reward is pure: a throw is a failure at once, as a second call would throw again. */
async function here(f: ScoringFunction, samples: ScoredSample[]): Promise<Outcome[]> {
  return await Promise.all(samples.map(async (sample): Promise<Outcome> => {
    try {
      return { score: await f.score(sample) };
    } catch (error) {
      return { failed: "reward_error", detail: `${f.name}: ${error instanceof Error ? error.message : String(error)}` };
    }
  }));
}

function combine(functions: ScoringFunction[], outcomes: Outcome[]): SampleScore {
  const failure = outcomes.find((outcome) => "failed" in outcome);
  if (failure) return { reward: null, parts: {}, failed: failure.failed, detail: failure.detail };
  const scored = outcomes.flatMap((outcome) => ("score" in outcome ? [outcome] : []));
  const parts = functions.flatMap(({ name }, i): [string, number][] => {
    const { score, metrics = {} } = scored[i]!;
    return [[name, score], ...Object.entries(metrics).map(([of, n]): [string, number] => [`${name}/${of}`, n])];
  });
  return {
    reward: functions.reduce((sum, { weight }, i) => sum + weight * scored[i]!.score, 0),
    parts: Object.fromEntries(parts),
    failed: null,
    detail: null,
  };
}
