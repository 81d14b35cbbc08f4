import type { EngineEvent } from "../engine/mod.ts";
import type { Home } from "./home.ts";

/**
 * Metrics of a run as files that anything can read: `metrics.jsonl`, one line per emission with the key of the work it is
 * of, and `metrics.json`, the last value of each. They are shown and never read back by the run itself.
 */
export class MetricsFile {
  readonly #home: Home;
  readonly #run: string;
  readonly #owns: (epoch: number) => Promise<boolean>;
  readonly #last: Record<string, number>;
  readonly #lines: string[] = [];
  #epoch = 0;

  /** `owns`: whether the engine of this epoch was not superseded; one that was writes nothing. */
  constructor(home: Home, { run, owns }: { run: string; owns: (epoch: number) => Promise<boolean> }) {
    this.#home = home;
    this.#run = run;
    this.#owns = owns;
    this.#last = home.lastMetrics(run);
  }

  on(event: EngineEvent): void {
    if (event.type === "run_started") this.#epoch = event.epoch;
    if (event.type === "metrics") {
      Object.assign(this.#last, event.metrics);
      const { key, at_ms, metrics } = event;
      this.#lines.push(JSON.stringify({ key, epoch: this.#epoch, at_ms, metrics }));
    }
    // A turn later: the next round's first operation is on its way by then, and nobody waits for files.
    if (event.type === "round_closed") setTimeout(() => void this.flush(), 0);
  }

  /** Writes what was collected. A full disk loses metrics, never the run: what must not be lost is in the journal. */
  async flush(): Promise<void> {
    if (this.#lines.length === 0) return;
    try {
      if (!await this.#owns(this.#epoch)) return void this.#lines.splice(0);
      const text = this.#lines.splice(0).map((line) => `${line}\n`).join("");
      Deno.writeTextFileSync(`${this.#home.runDir(this.#run)}/metrics.jsonl`, text, { append: true });
      this.#home.writeFact(this.#run, { name: "metrics.json", value: this.#last });
    } catch (error) {
      console.error(`Metrics of run ${this.#run} could not be written: ${(error as Error).message}`);
    }
  }
}
