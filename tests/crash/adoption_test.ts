import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import type { FaultEvent } from "./kill_points.ts";
import { at, rl, SMALL } from "./runs.ts";
import { disturbed } from "./survive.ts";
import { sharedUndisturbed } from "./undisturbed.ts";

/**
 * Where an engine dies: when a rank has just taken its task, or with the answer in hand and no row
 * of it yet.
 */
type Moment = { phase: FaultEvent["phase"]; frame: "accepted" | "answered" };

/**
 * The engine's n-th frame at such a moment, in the middle of the run. A task's frames: task,
 * accepted, its data, its answer.
 */
function frameOf(events: FaultEvent[], { phase, frame }: Moment): number {
  const frames = events.filter(({ place, event }) => place === "engine" && event === "frame");
  const half = Math.floor(frames.length / 2);
  const first = frames.findIndex((one, i) =>
    i > half && one.phase === phase && frames[i - 1]!.phase !== phase
  );
  const after = frames.findIndex((one, i) => i > first && one.phase !== phase);
  return frames[frame === "accepted" ? first + 1 : after - 1]!.n;
}

/** How many operations of each kind began and ended in workers, whichever engine asked for them. */
function operations(events: FaultEvent[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { place, event, phase } of events) {
    if (event === "op") counts[`${place} ${phase}`] = (counts[`${place} ${phase}`] ?? 0) + 1;
  }
  return counts;
}

type States = { group: string; generation: number; pid: number | null }[];

async function workersOf(dir: string): Promise<States> {
  const { workers } = JSON.parse(await Deno.readTextFile(`${dir}/workers.json`)) as {
    workers: States;
  };
  return workers.map(({ group, generation, pid }) => ({ group, generation, pid }))
    .toSorted((a, b) => a.group.localeCompare(b.group));
}

const moments: [string, Moment][] = [
  ["while a slab is generated", { phase: "generation", frame: "accepted" }],
  ["with a training step's answer in hand and no row of it", {
    phase: "training",
    frame: "answered",
  }],
];

for (const [when, moment] of moments) {
  Deno.test(`an engine killed ${when} adopts its workers: same processes, no operation done twice`, async () => {
    const against = await sharedUndisturbed(SMALL);
    const fault = `kill:engine@frame:${frameOf(against.events, moment)}`;
    let events: FaultEvent[] = [];
    const { shown } = await disturbed({
      against,
      env: { HOLDFAST_FAULT: fault },
      disturb: async ({ engine, place, run }) => {
        strictEqual((await engine.finished).signal, "SIGKILL");
        const dir = `${place.home}/runs/${run}`;
        const before = await workersOf(dir);
        const resumed = await rl(["resume", run, ...at(place)], {});
        strictEqual(resumed.code, 0, resumed.output);
        deepStrictEqual(await workersOf(dir), before);
        ok(before.every(({ generation, pid }) => generation === 1 && pid !== null));
        const lines = (await Deno.readTextFile(`${place.home}/events.jsonl`)).trim().split("\n");
        events = lines.map((line) => JSON.parse(line) as FaultEvent);
      },
    });
    deepStrictEqual(operations(events), operations(against.events));
    strictEqual(shown.generated.groups, against.groups);
    const recoveries = shown.recoveries.map((
      { cause, action, batches_redone },
    ) => [cause, action, batches_redone]);
    deepStrictEqual(recoveries, [["engine_lost", "adopt", 0]]);
  });
}
