import type { EngineEvent } from "../../engine/mod.ts";
import { SPARK_POINTS } from "./sparkline.ts";
import { TokenRate } from "./token_rate.ts";

type RoundClosed = Extract<EngineEvent, { type: "round_closed" }>;
type Metrics = Extract<EngineEvent, { type: "metrics" }>;

/** How far a run is: what its events add up to. It keeps no more than a screen shows. */
export class RunProgress {
  /** The last value of each metric. */
  readonly metrics: Record<string, number> = {};
  readonly rewards: number[] = [];
  /** Mean tokens of a completion. */
  readonly lengths: number[] = [];
  /** The loop that closed a round last. `times`: Infinity if its run does not record them. */
  loop: Pick<RoundClosed, "round" | "times"> & { name: string } | null = null;
  readonly #now: () => number;
  readonly #running = new Map<string, { stage: string; runs_on: string; since: number }>();
  /** Groups of workers that have had work. */
  readonly #groups = new Set<string>();
  #rate = new TokenRate();
  /** The first round that this engine closed, and when. */
  #first: { round: number; at: number } | null = null;

  /** `now`: milliseconds since any moment. */
  constructor(now: () => number) {
    this.#now = now;
  }

  on(event: EngineEvent): void {
    switch (event.type) {
      case "run_started":
        this.#restart();
        break;
      case "stage_started": {
        const { key, stage, runs_on } = event;
        this.#running.set(key, { stage, runs_on, since: this.#now() });
        if (runs_on !== "engine") this.#groups.add(runs_on);
        break;
      }
      case "stage_finished":
      case "stage_failed":
        this.#running.delete(event.key);
        break;
      case "metrics":
        this.#take(event);
        break;
      case "round_closed":
        this.#closed(event);
        break;
    }
  }

  /** Stages in progress, each once. */
  stages(): string[] {
    return [...new Set([...this.#running.values()].map(({ stage }) => stage))];
  }

  /** Which groups of workers wait for whom, as far as their stages show it; null: none waits. */
  waiting(): string | null {
    const busy = new Set([...this.#running.values()].map(({ runs_on }) => runs_on));
    const idle = [...this.#groups].filter((group) => !busy.has(group));
    if (busy.size === 0 || idle.length === 0) return null;
    const working = [...busy].filter((group) => group !== "engine");
    return `${idle.join(" and ")} ${idle.length === 1 ? "waits" : "wait"} for ${
      working.join(" and ") || "engine"
    }`;
  }

  tokensPerSecond(): number {
    return this.#rate.perSecond(this.#now());
  }

  /**
   * Counts only rounds since this engine started: a resumed run's earlier rounds would look
   * instant. Null: unknown.
   */
  remainingSeconds(): number | null {
    if (this.loop === null || this.#first === null) return null;
    const { round, times } = this.loop;
    const closed = round - this.#first.round;
    if (closed <= 0 || times === Infinity) return null;
    return ((this.#now() - this.#first.at) / closed) * (times - round) / 1000;
  }

  /** Another engine executes the run now: nothing of the last one's is in progress. */
  #restart(): void {
    this.#running.clear();
    this.#rate = new TokenRate();
    this.#first = null;
  }

  #take({ key, metrics }: Metrics): void {
    Object.assign(this.metrics, metrics);
    const tokens = (metrics["perf/generated_tokens"] ?? 0) + (metrics["perf/trained_tokens"] ?? 0);
    if (tokens > 0) {
      const at = this.#now();
      this.#rate.add({ since: this.#running.get(key)?.since ?? at, at, tokens });
    }
    keep(this.rewards, metrics["reward/mean"]);
    keep(this.lengths, metrics["completions/length_mean"]);
  }

  #closed({ loop: name, round, times }: RoundClosed): void {
    if (this.loop?.name !== name) this.#first = null;
    this.#first ??= { round, at: this.#now() };
    this.loop = { name, round, times };
    this.#rate.roundClosed(this.#now());
  }
}

/** Adds a value, if there is one, and drops what no curve shows any more. */
function keep(values: number[], value: number | undefined): void {
  if (value !== undefined) values.push(value);
  if (values.length > SPARK_POINTS) values.shift();
}
