/** One run of a shipped algorithm's configuration, for its curve. */
import { fileURLToPath } from "node:url";
import { ONLINE_ALGORITHMS } from "../algs/mod.ts";
import { type Config, loadConfig, PreferenceConfig, QuickstartConfig } from "../configs/mod.ts";
import type { EngineEvent } from "../engine/mod.ts";
import { flowDefinition, SHIPPED } from "../flows/mod.ts";
import { createRun, executeRun, Home } from "../runs/mod.ts";
import { withBenchHome } from "./quickstart_run.ts";

/**
 * A round: samples and seconds since the first began, and what the algorithm is judged by, between
 * 0 and 1.
 */
export type CurvePoint = { round: number; samples: number; seconds: number; value: number };

/** What is read of an algorithm's run. */
type Learned = {
  config: string;
  /** The loop whose rounds are points of the curve. */
  loop: string;
  /** What the values are, for a reader. */
  label: string;
  /** From a stage's metrics; undefined: they lack it. */
  value(metrics: Record<string, number>): number | undefined;
  /** Rows that a round trains on; null: its samples are those that were generated. */
  rows(config: Config): number | null;
};

const PAIRS: Omit<Learned, "config"> = {
  loop: "round",
  label: "pairs told apart",
  value: (metrics) => metrics["reward/accuracy"], // Of unseen pairs: no two rounds share one.
  rows: (config) => PreferenceConfig.parse(config).pairs_per_round,
};

const REWARD: Omit<Learned, "config"> = {
  loop: "round",
  label: "mean reward",
  value: (metrics) => metrics["reward/mean"],
  rows: () => null,
};

/** The quickstart's warm-up teaches a new model the task by demonstrations, each seen once. */
const DEMONSTRATIONS: Omit<Learned, "config"> = {
  loop: "step",
  label: "probability of a token (geometric mean)",
  value: (metrics) =>
    metrics["policy/loss"] === undefined ? undefined : Math.exp(-metrics["policy/loss"]),
  rows: (config) => QuickstartConfig.parse(config).warmup.rows_per_round,
};

export function learned(algorithm: string): Learned {
  if (algorithm === "sft") return { ...DEMONSTRATIONS, config: shipped("quickstart") };
  const judged = algorithm === "kto" ? { ...PAIRS, label: "completions told apart" } : PAIRS;
  return {
    ...(algorithm in ONLINE_ALGORITHMS ? REWARD : judged),
    config: shipped(`algorithms/${algorithm}`),
  };
}

function shipped(name: string): string {
  return fileURLToPath(new URL(`../configs/${name}.yaml`, import.meta.url));
}

/**
 * Runs the file unchanged except its seeds, and ends it with the round that uses up the budget, or
 * with the loop's last one.
 * @throws {Error} If the run fails, or is over before the budget is.
 */
export async function learningCurve(
  what: Learned,
  { seed, budget }: { seed: number; budget: number | null },
): Promise<CurvePoint[]> {
  const overrides = [`seed=${seed}`, `model.seed=${seed}`];
  const { config } = await loadConfig(what.config, { overrides });
  return await withBenchHome(async (dir) => {
    const watch = new RoundWatch({ ...what, rows: what.rows(config) }, budget);
    const home = Home.open(dir);
    try {
      await execute(home, config, watch);
    } finally {
      await home.close();
    }
    if (watch.spent < (budget ?? 0)) {
      throw new Error(
        `Cannot judge '${what.config}' by ${budget} samples because its run is over after ` +
          `${watch.spent}`,
      );
    }
    return watch.curve;
  });
}

async function execute(home: Home, config: Config, watch: RoundWatch): Promise<void> {
  const definition = flowDefinition(config.flow);
  const head = await createRun(home, definition, {
    config,
    id: "bench",
    entry: `${SHIPPED}${config.flow}`,
  });
  const run = { head, graph: definition.build(config) };
  const outcome = await executeRun(home, run, {
    drain: watch.signal,
    onEvent: (event) => watch.on(event),
  });
  if (outcome.status === "failed") {
    throw new Error(`Cannot continue because the run failed: ${JSON.stringify(outcome.error)}`);
  }
}

/**
 * Reads the curve off a run's events, and ends the run with the round in which the budget is spent.
 */
export class RoundWatch {
  readonly curve: CurvePoint[] = [];
  spent = 0;
  readonly #enough = new AbortController();
  #begun_ms: number | null = null;
  #value: number | null = null;

  constructor(
    readonly what: Pick<Learned, "loop" | "value"> & { rows: number | null },
    readonly budget: number | null,
    readonly now_ms: () => number = () => performance.now(),
  ) {}

  get signal(): AbortSignal {
    return this.#enough.signal;
  }

  on(event: EngineEvent): void {
    if (this.signal.aborted) return;
    const { loop, value } = this.what;
    if (event.type === "round_closed" && event.loop === loop) return this.#close(event);
    if (!("key" in event) || !event.key.startsWith(`${loop}/`)) return;
    if (event.type === "stage_started") this.#begun_ms ??= this.now_ms();
    if (event.type === "metrics") this.#value = value(event.metrics) ?? this.#value;
    if (event.type === "note" && event.kind === "note/generated") {
      this.spent += (event.value as { samples: number }).samples;
    }
  }

  #close({ round, times }: { round: number; times: number }): void {
    if (this.#value === null) {
      throw new Error(`Cannot read round ${round} because no metric told what it learned`);
    }
    const seconds = (this.now_ms() - (this.#begun_ms ?? NaN)) / 1000;
    this.spent += this.what.rows ?? 0;
    this.curve.push({ round, samples: this.spent, seconds, value: this.#value });
    this.#value = null;
    if (this.budget === null ? round === times : this.spent >= this.budget) this.#enough.abort();
  }
}
