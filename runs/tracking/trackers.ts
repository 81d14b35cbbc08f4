import { type TrackConfig, TrackConfig as Schema, type TrackerConfig } from "../../configs/mod.ts";
import {
  type Clock,
  type EngineEvent,
  InvalidInputError,
  type RunHead,
  sha256Hex,
  systemClock,
} from "../../engine/mod.ts";
import {
  endEarlierTrackers,
  ensureEnvironment,
  type OnEnvironmentProgress,
  startTracker,
} from "../../workers/mod.ts";
import type { Home } from "../home/home.ts";
import { roundSamples } from "./round_samples.ts";
import { TrackPoints } from "./track_points.ts";
import { type TrackedEnd, Tracker, type TrackerOptions } from "./tracker.ts";

/** What all trackers of a run work with. */
type TrackersOptions = Pick<TrackerOptions, "pause_ms" | "points_max"> & {
  head: RunHead;
  /** The configuration with the settings that resumes have changed. */
  config: Record<string, unknown>;
  owns: (epoch: number) => Promise<boolean>;
  say: (text: string) => void;
  onSetup?: OnEnvironmentProgress;
  /** Ends the creation of their environment: a resume sends what they lack. */
  signal?: AbortSignal;
  clock?: Clock;
  /** How processes are started; tests have others. */
  start?: typeof startTracker;
};

/** Variables that a tracker's process inherits: where credentials come from. */
const VARIABLES: Record<TrackerConfig["name"], string[]> = {
  tensorboard: [],
  mlflow: ["MLFLOW_TRACKING_"],
  wandb: ["WANDB_"],
  trackio: ["TRACKIO_", "HF_"],
};

/**
 * The trackers of a run, each with a process. They only read the journal: a run with them records
 * the same as without, and whatever happens to them costs it nothing.
 */
export class Trackers {
  readonly #home: Home;
  readonly #options: TrackersOptions;
  readonly #config: TrackConfig;
  #trackers: Tracker[] = [];
  /** Settled once the processes may start. */
  #begun: Promise<void> | null = null;
  /** An environment that is being created is waited for: the limits of trackers are for sending. */
  readonly #environments: Promise<unknown>[] = [];

  constructor(home: Home, options: TrackersOptions) {
    this.#home = home;
    this.#options = options;
    this.#config = trackConfig(options.config);
  }

  on(event: EngineEvent): void {
    if (event.type === "run_started") this.start(event.epoch);
    if (event.type !== "round_closed" && event.type !== "metrics") return;
    // One turn later, as for metrics.jsonl.
    setTimeout(() => this.#wake(), 0);
  }

  /** Starts what the configuration names, once. */
  start(epoch: number): void {
    if (this.#config.length === 0) return;
    this.#begun ??= this.#begin(epoch).catch((error) => {
      this.#options.say(`trackers could not be started: ${(error as Error).message}`);
    });
  }

  /**
   * Sends what is left. `limit_ms`: instead of each tracker's own. Returns whether all have
   * everything.
   */
  async close(end: () => Promise<TrackedEnd>, limit_ms?: number): Promise<boolean> {
    if (this.#begun === null) return true;
    await this.#begun;
    if (limit_ms === undefined) await Promise.allSettled(this.#environments);
    try {
      const ending = await end();
      const closed = this.#trackers.map((tracker) => tracker.close(ending, limit_ms));
      return (await Promise.all(closed)).every((complete) => complete);
    } catch (error) { // Of the store: the run has its outcome already.
      await this.stop();
      this.#options.say(`trackers did not learn how the run ended: ${(error as Error).message}`);
      return false;
    }
  }

  /** Ends their processes immediately. */
  async stop(): Promise<void> {
    await this.#begun;
    await Promise.all(this.#trackers.map((tracker) => tracker.stop()));
  }

  #wake(): void {
    for (const tracker of this.#trackers) tracker.wake();
  }

  async #begin(epoch: number): Promise<void> {
    const { head, owns, say, clock = systemClock, pause_ms, points_max } = this.#options;
    await endEarlierTrackers({ home: this.#home.dir, run: head.id }, clock);
    const described = await this.#described();
    this.#trackers = this.#config.map((settings, i) =>
      new Tracker({
        settings,
        run: described,
        start: () => this.#start(settings, { name: `${settings.name}_${i}`, epoch }),
        points: () => new TrackPoints(this.#home, head),
        samples: (round) => roundSamples(this.#home, head, { ...round, count: settings.samples }),
        owns: () => owns(epoch),
        say,
        clock,
        pause_ms,
        points_max,
      })
    );
  }

  async #start(settings: TrackerConfig, { name, epoch }: { name: string; epoch: number }) {
    const { head, start = startTracker, clock } = this.#options;
    return await start({
      name,
      python: await this.#python(settings),
      home: this.#home.dir,
      run: head.id,
      log_path: `${this.#home.logDir(head.id, epoch)}/tracker_${name}.log`,
      variables: VARIABLES[settings.name],
      clock,
    });
  }

  async #python({ python }: TrackerConfig): Promise<string> {
    const { onSetup, signal } = this.#options;
    const environment = ensureEnvironment("trackers", {
      user_python: python,
      onProgress: onSetup,
      signal,
    });
    if (this.#environments.length < this.#config.length) this.#environments.push(environment);
    return await environment;
  }

  /** What trackers learn about the run. Ids are the same for every engine and every home's copy. */
  async #described(): Promise<Record<string, unknown>> {
    const { head, config } = this.#options;
    const { track: _, ...rest } = config;
    const parent = head.parent === null ? null : await this.#home.store.head(head.parent.run);
    return {
      id: head.id,
      uid: await this.#uid(head),
      name: head.name,
      created_ms: head.created_ms,
      config: rest,
      dir: this.#home.runDir(head.id),
      home: this.#home.dir,
      parent: head.parent && {
        id: head.parent.run,
        uid: parent && await this.#uid(parent),
        round: head.parent.round,
      },
    };
  }

  /** Names a run among those of all homes: a service may have several runs with one id. */
  async #uid({ id, created_ms }: RunHead): Promise<string> {
    const { id: store } = await this.#home.store.identity();
    return `${id}-${sha256Hex(`${store}/${id}/${created_ms}`).slice(0, 8)}`;
  }
}

/** The trackers that a configuration names; a custom graph's is checked here. */
function trackConfig({ track }: Record<string, unknown>): TrackConfig {
  if (track === undefined) return [];
  const parsed = Schema.safeParse(track);
  if (parsed.success) return parsed.data;
  throw new InvalidInputError(
    `Cannot use 'track' because it is not a list of trackers: ${parsed.error.message}`,
    {},
  );
}
