import {
  type Clock,
  type EngineError,
  hasEnded,
  type OwnershipOptions,
  type RunHead,
} from "../engine/mod.ts";
import type { Home } from "../runs/mod.ts";
import { damagedFacts, type WatchedFacts, WatchedRun } from "./watched_run.ts";

/** Runs that are looked at; older ones are left out. */
const RUNS_MAX = 1000;

/** `all`: also runs that are done, failed or cancelled. */
type WatchOptions = OwnershipOptions & { clock: Clock; all?: boolean };

/** The runs of a store, watched at intervals. */
export class WatchedRuns {
  readonly #home: Home;
  readonly #options: WatchOptions;
  #watched = new Map<string, WatchedRun>();

  constructor(home: Home, options: WatchOptions) {
    this.#home = home;
    this.#options = options;
  }

  /** The runs that have not ended, newest first. One that cannot be read says why. */
  async facts(): Promise<WatchedFacts[]> {
    const damaged: WatchedFacts[] = [];
    const onDamaged = ({ facts, message }: EngineError) =>
      void damaged.push(damagedFacts(String(facts.run), message));
    const heads = await this.#home.store.heads({ limit: RUNS_MAX, onDamaged });
    const shown = heads.filter((head) =>
      this.#options.all || (!hasEnded(head) && head.status !== "failed")
    );
    const before = this.#watched;
    this.#watched = new Map();
    const read: WatchedFacts[] = [];
    for (const head of shown) read.push(await this.#factsOf(head, before.get(head.id)));
    return [...damaged, ...read];
  }

  async #factsOf(head: RunHead, before: WatchedRun | undefined): Promise<WatchedFacts> {
    try {
      const run = before ?? new WatchedRun(this.#home, { head, ...this.#options });
      const facts = await run.facts(head);
      this.#watched.set(head.id, run);
      return facts;
    } catch (error) {
      // Of any kind: a value of another shape than its reader expects must not hide the other runs.
      return damagedFacts(head.id, (error as Error).message);
    }
  }
}
