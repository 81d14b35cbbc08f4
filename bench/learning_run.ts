/** One run of a shipped algorithm's configuration, up to a number of samples. */
import { fileURLToPath } from "node:url";
import { type Config, loadConfig } from "../configs/mod.ts";
import type { EngineEvent } from "../engine/mod.ts";
import { createRun, executeRun, flowDefinition, Home, SHIPPED } from "../flows/mod.ts";
import { withBenchHome } from "./quickstart_run.ts";

/** A round: samples and seconds since the first began, and the mean reward of all that it sampled. */
export type CurvePoint = { round: number; samples: number; seconds: number; reward: number };

export function configPath(algorithm: string): string {
  return fileURLToPath(new URL(`../configs/algorithms/${algorithm}.yaml`, import.meta.url));
}

/**
 * Runs the file as it is but for its seeds, and ends it with the round that uses the budget up.
 * @throws {Error} If the run fails, or is over before the budget is.
 */
export async function learningCurve(
  algorithm: string,
  { seed, budget }: { seed: number; budget: number },
): Promise<CurvePoint[]> {
  const overrides = [`seed=${seed}`, `model.seed=${seed}`];
  const { config } = await loadConfig(configPath(algorithm), { overrides });
  return await withBenchHome(async (dir) => {
    const watch = new RoundWatch(budget);
    const home = Home.open(dir);
    try {
      await execute(home, config, watch);
    } finally {
      await home.close();
    }
    if (watch.spent < budget) {
      throw new Error(`Cannot judge '${algorithm}' by ${budget} samples as its run is over after ${watch.spent}`);
    }
    return watch.curve;
  });
}

async function execute(home: Home, config: Config, watch: RoundWatch): Promise<void> {
  const definition = flowDefinition(config.flow);
  const head = await createRun(home, definition, { config, id: "bench", entry: `${SHIPPED}${config.flow}` });
  const run = { head, graph: definition.build(config) };
  const outcome = await executeRun(home, run, { drain: watch.signal, onEvent: (event) => watch.on(event) });
  if (outcome.status === "failed") throw new Error(`Cannot go on as the run failed: ${JSON.stringify(outcome.error)}`);
}

/** Reads the curve off a run's events, and ends the run with the round in which the budget is spent. */
export class RoundWatch {
  readonly curve: CurvePoint[] = [];
  spent = 0;
  readonly #enough = new AbortController();
  #begun_ms: number | null = null;
  #reward: number | null = null;

  constructor(readonly budget: number, readonly now_ms: () => number = () => performance.now()) {}

  get signal(): AbortSignal {
    return this.#enough.signal;
  }

  on(event: EngineEvent): void {
    if (this.signal.aborted) return;
    if (event.type === "round_closed" && event.loop === "round") return this.#close(event.round);
    if (!("key" in event) || !event.key.startsWith("round/")) return;
    if (event.type === "stage_started") this.#begun_ms ??= this.now_ms();
    if (event.type === "metrics") this.#reward = event.metrics["reward/mean"] ?? this.#reward;
    if (event.type === "note" && event.kind === "note/generated") {
      this.spent += (event.value as { samples: number }).samples;
    }
  }

  #close(round: number): void {
    if (this.#reward === null) throw new Error(`Cannot read round ${round} as it told no reward/mean`);
    const seconds = (this.now_ms() - (this.#begun_ms ?? NaN)) / 1000;
    this.curve.push({ round, samples: this.spent, seconds, reward: this.#reward });
    this.#reward = null;
    if (this.spent >= this.budget) this.#enough.abort();
  }
}
