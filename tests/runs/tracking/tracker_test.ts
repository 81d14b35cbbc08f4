import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { TrackerConfig } from "../../../configs/mod.ts";
import { ManualClock } from "../../../engine/mod.ts";
import { Tracker, type TrackerOptions } from "../../../runs/tracking/tracker.ts";
import type { TrackPoint, TrackPoints } from "../../../runs/tracking/track_points.ts";
import type { TrackerAnswer } from "../../../workers/mod.ts";

const END = { status: "done", card: null } as const;

const point = (number: number): TrackPoint => ({
  number,
  step: number,
  round: { loop: "round", round: number },
  at_ms: number,
  metrics: { "reward/mean": number },
});

type Sent = { points: TrackPoint[]; samples: { step: number }[] };

/** A tracker whose server can be down, and what it has. */
class World {
  readonly clock = new ManualClock();
  readonly recorded: TrackPoint[] = [];
  readonly has: TrackPoint[] = [];
  readonly tables: number[] = [];
  readonly lines: string[] = [];
  readonly ends: unknown[] = [];
  starts = 0;
  ended = 0;
  owned = true;
  /** What a message gets instead of its answer. */
  refuse: () => Promise<TrackerAnswer> | null = () => null;
  #changed = Promise.withResolvers<void>();

  tracker(settings: Record<string, unknown> = {}): Tracker {
    const recorded = this.recorded;
    const pointsOf = (): Pick<TrackPoints, "next"> => {
      let at = 0;
      return {
        async *next() {
          const page = recorded.slice(at);
          at = recorded.length;
          if (page.length > 0) yield page;
        },
      };
    };
    const options: TrackerOptions = {
      settings: TrackerConfig.parse({ name: "tensorboard", samples_every_rounds: 2, ...settings }),
      run: {},
      start: () => {
        this.starts++;
        this.#tell();
        return Promise.resolve({
          pid: 0,
          ask: (message) => this.#answer(message as { open?: 1; end?: 1 } & Sent),
          end: () => {
            this.ended++;
            this.#tell();
            return Promise.resolve();
          },
        });
      },
      points: () => pointsOf() as TrackPoints,
      samples: ({ round }) => Promise.resolve([{ round }]),
      owns: () => Promise.resolve(this.owned),
      say: (text) => {
        this.lines.push(text);
        this.#tell();
      },
      clock: this.clock,
    };
    return new Tracker(options);
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      this.#changed = Promise.withResolvers();
      await this.#changed.promise;
    }
  }

  async #answer(message: { open?: 1; end?: 1 } & Sent): Promise<TrackerAnswer> {
    const refused = this.refuse();
    if (refused) return await refused;
    if (message.open) {
      return { opened: { after: this.has.at(-1)?.number ?? 0, where: "http://there" } };
    }
    if (message.end) {
      this.ends.push(message.end);
      return { ended: true };
    }
    this.has.push(...message.points);
    this.tables.push(...message.samples.map(({ step }) => step));
    this.#tell();
    return { confirmed: message.points.length };
  }

  #tell(): void {
    this.#changed.resolve();
  }

  /** Its process has ended, and it waits before the next. */
  async pausing(): Promise<void> {
    await this.until(() => this.ended === this.starts);
    await this.clock.untilSleeping(1);
  }

  numbers(): number[] {
    return this.has.map(({ number }) => number);
  }
}

Deno.test("a tracker gets what is recorded, as it is recorded, and the end", async () => {
  const world = new World();
  world.recorded.push(point(1));
  const tracker = world.tracker({ style: "trl" });
  await world.until(() => world.has.length === 1);
  world.recorded.push(point(2), point(3));
  tracker.wake();
  strictEqual(await tracker.close(END), true);
  deepStrictEqual(world.numbers(), [1, 2, 3]);
  deepStrictEqual(world.has[2]!.metrics, { reward: 3 });
  deepStrictEqual([world.tables, world.ends], [[2], [END]]);
  deepStrictEqual(world.lines, ["tracker tensorboard: http://there"]);
  deepStrictEqual([world.starts, world.ended], [1, 1]);
});

Deno.test("a server that is down for ten minutes costs two lines; nothing is lost", async () => {
  const world = new World();
  world.recorded.push(point(1));
  const tracker = world.tracker();
  await world.until(() => world.has.length === 1);
  world.refuse = () => Promise.resolve({ failed: "nobody answers" });
  world.recorded.push(point(2));
  tracker.wake();
  for (const pause of [2, 4, 8, 16, 32, 64, 128, 256, 300]) {
    await world.pausing();
    const { starts } = world;
    await world.clock.advance(pause * 1000 - 1);
    strictEqual(world.starts, starts);
    await world.clock.advance(1);
    await world.until(() => world.starts > starts);
    world.recorded.push(point(world.recorded.length + 1));
  }
  await world.pausing();
  world.refuse = () => null;
  await world.clock.advance(300_000);
  await world.until(() => world.lines.length === 3);
  strictEqual(await tracker.close(END), true);
  deepStrictEqual(world.numbers(), world.recorded.map(({ number }) => number));
  deepStrictEqual(world.lines.slice(1), [
    "tracker tensorboard: nobody answers. The run continues; its points wait in the journal",
    "tracker tensorboard: it works again, and has what had waited",
  ]);
});

Deno.test("the end of a run waits for a tracker as long as its limit, then kills it", async () => {
  const world = new World();
  const tracker = world.tracker({ flush_timeout_s: 7 });
  await world.until(() => world.lines.length === 1);
  world.refuse = () => new Promise(() => {});
  world.recorded.push(point(1));
  const closed = tracker.close(END);
  await world.clock.untilSleeping(2);
  await world.clock.advance(7_000);
  strictEqual(await closed, false);
  match(world.lines.at(-1)!, /some points were not sent\. A resume sends them/);
  deepStrictEqual([world.starts, world.ended], [1, 2]); // Killed, then let go.
});

Deno.test("a process that is silent for three minutes is replaced", async () => {
  const world = new World();
  world.recorded.push(point(1));
  world.refuse = () => new Promise(() => {});
  const tracker = world.tracker();
  await world.clock.untilSleeping(1);
  world.refuse = () => null;
  await world.clock.advance(180_000);
  await world.pausing();
  await world.clock.advance(2_000);
  await world.until(() => world.has.length === 1);
  strictEqual(await tracker.close(END), true);
  deepStrictEqual([world.starts, world.numbers()], [2, [1]]);
  match(world.lines[0]!, /it does not answer for 180 s/);
});

Deno.test("an engine that lost the run sends nothing", async () => {
  const world = new World();
  world.owned = false;
  world.recorded.push(point(1));
  const tracker = world.tracker();
  await world.until(() => world.starts === 1);
  strictEqual(await tracker.close(END), true);
  deepStrictEqual([world.numbers(), world.ends], [[], []]);
});
