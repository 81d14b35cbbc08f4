import type { TrackerConfig } from "../../configs/mod.ts";
import type { Clock } from "../../engine/mod.ts";
import type { TrackerAnswer, TrackerProcess } from "../../workers/mod.ts";
import { styled } from "./metric_styles.ts";
import type { TrackPoint, TrackPoints } from "./track_points.ts";

/** How a run is left when its engine ends. */
export type TrackedEnd = {
  status: "done" | "failed" | "cancelled" | "interrupted";
  /** What the run has made, in Markdown; null: it is not done. */
  card: string | null;
};

/** What one tracker of a run works with. */
export type TrackerOptions = {
  settings: TrackerConfig;
  /** Describes the run to the tracker. */
  run: Record<string, unknown>;
  start: () => Promise<TrackerProcess>;
  /** From the run's first point on: a process asks again for what its tracker lacks. */
  points: () => TrackPoints;
  /** Completions of a round, for a table. */
  samples: (round: NonNullable<TrackPoint["round"]>) => Promise<Record<string, unknown>[]>;
  /** Whether this engine still owns the run: only one may write. */
  owns: () => Promise<boolean>;
  say: (text: string) => void;
  clock: Clock;
  /** The pause before the second try; each later one is twice as long, up to `most`. */
  pause_ms?: { first: number; most: number };
  /** Points in a message. */
  points_max?: number;
};

const POINTS_MAX = 256;
/** A process that is silent for this long is replaced. */
const ANSWER_LIMIT_MS = 180_000;
const PAUSE_MS = { first: 2_000, most: 300_000 };

/**
 * Keeps one tracker of a run up to date. The journal is the only queue: a process that starts reads
 * from its tracker which point it has last, and receives the later ones. Whatever fails, the
 * process is replaced after a pause, and nothing waits for it.
 */
export class Tracker {
  readonly #options: TrackerOptions;
  readonly #name: string;
  /** Aborted when the run ends: no pause any more. */
  readonly #closing = new AbortController();
  /** Aborted when nothing waits for the tracker any more. */
  readonly #over = new AbortController();
  readonly #done: Promise<boolean>;
  #woken = Promise.withResolvers<void>();
  #end: TrackedEnd | null = null;
  #failed = false;
  #announced = false;

  constructor(options: TrackerOptions) {
    this.#options = options;
    this.#name = options.settings.name;
    this.#done = this.#live();
  }

  /** There may be new points. */
  wake(): void {
    this.#woken.resolve();
  }

  /** Sends what is left and ends, within the tracker's limit. Returns whether it has everything. */
  async close(
    end: TrackedEnd,
    limit_ms = this.#options.settings.flush_timeout_s * 1000,
  ): Promise<boolean> {
    this.#end = end;
    this.#closing.abort(new Error("the run ends"));
    this.wake();
    const timer = new AbortController();
    const late = this.#options.clock.sleep(limit_ms, timer.signal).then(() => null, () => null);
    const complete = await Promise.race([this.#done, late]);
    timer.abort();
    this.#over.abort(new Error("the run has ended"));
    await this.#done;
    if (complete === true) return true;
    this.#say("some points were not sent. A resume sends them, and so does the verb track");
    return false;
  }

  /** Ends immediately. */
  async stop(): Promise<void> {
    this.#closing.abort(new Error("the tracker is stopped"));
    this.#over.abort(new Error("the tracker is stopped"));
    this.wake();
    await this.#done;
  }

  #say(text: string): void {
    this.#options.say(`tracker ${this.#name}: ${text}`);
  }

  /** Whether the tracker has everything. */
  async #live(): Promise<boolean> {
    const { first, most } = this.#options.pause_ms ?? PAUSE_MS;
    for (let tries = 0;; tries++) {
      const last_try = this.#closing.signal.aborted;
      try {
        if (await this.#session()) return true;
      } catch (error) {
        if (this.#over.signal.aborted) return false;
        if (!this.#failed) {
          tries = 0;
          this.#say(
            `${(error as Error).message}. The run continues; its points wait in the journal`,
          );
        }
        this.#failed = true;
      }
      if (last_try || this.#over.signal.aborted) return false;
      const pause_ms = Math.min(first * 2 ** tries, most);
      await this.#options.clock.sleep(pause_ms, this.#closing.signal).catch(() => {});
    }
  }

  /** One process's life. True: it ended in order. */
  async #session(): Promise<boolean> {
    const process = await this.#options.start();
    const kill = () => void process.end().catch(() => {});
    this.#over.signal.addEventListener("abort", kill);
    try {
      this.#over.signal.throwIfAborted();
      return await this.#follow(process);
    } finally {
      this.#over.signal.removeEventListener("abort", kill);
      await process.end();
    }
  }

  async #follow(process: TrackerProcess): Promise<boolean> {
    const { settings, run, points: pointsOf, owns } = this.#options;
    const { opened } = await this.#ask(process, "opened", { open: { settings, run } });
    if (!this.#announced) this.#say(opened.where);
    this.#announced = true;
    const points = pointsOf();
    for (;;) {
      // Before points are read: what is recorded meanwhile wakes it again.
      this.#woken = Promise.withResolvers();
      const end = this.#end;
      for await (const page of points.next()) {
        if (!await owns()) return true;
        await this.#send(process, page.filter(({ number }) => number > opened.after));
      }
      if (this.#failed) this.#say("it works again, and has what had waited");
      this.#failed = false;
      if (end !== null) {
        await this.#ask(process, "ended", { end });
        return true;
      }
      await this.#woken.promise;
      this.#over.signal.throwIfAborted();
    }
  }

  async #send(process: TrackerProcess, points: TrackPoint[]): Promise<void> {
    const { settings: { style }, points_max = POINTS_MAX } = this.#options;
    for (let from = 0; from < points.length; from += points_max) {
      const part = points.slice(from, from + points_max);
      const sent = part.map((point) => ({ ...point, metrics: styled(point.metrics, style) }));
      const samples = await this.#samples(part);
      await this.#ask(process, "confirmed", { points: sent, samples });
    }
  }

  /** Tables of the rounds that have one. */
  async #samples(points: readonly TrackPoint[]) {
    const { samples: count, samples_every_rounds: every } = this.#options.settings;
    const shown = points.filter(({ round }) => count > 0 && round && round.round % every === 0);
    const tables = shown.map(async ({ step, round }) => ({
      step,
      rows: await this.#options.samples(round!),
    }));
    return (await Promise.all(tables)).filter(({ rows }) => rows.length > 0);
  }

  async #ask<Kind extends string>(process: TrackerProcess, kind: Kind, message: unknown) {
    const timer = new AbortController();
    const { clock } = this.#options;
    const ended = AbortSignal.any([timer.signal, this.#over.signal]);
    const silent = clock.sleep(ANSWER_LIMIT_MS, ended).then((): TrackerAnswer => ({
      failed: `it does not answer for ${ANSWER_LIMIT_MS / 1000} s`,
    }));
    silent.catch(() => {});
    const answer = await Promise.race([process.ask(message), silent]);
    timer.abort();
    if (kind in answer) return answer as Extract<TrackerAnswer, Record<Kind, unknown>>;
    throw new Error("failed" in answer ? answer.failed : "its process answered something else");
  }
}
