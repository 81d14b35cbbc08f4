import { ok } from "node:assert/strict";
import type { JournalRow } from "../../engine/mod.ts";
import { brokenRules } from "./recorded_rules.ts";
import {
  at,
  type Finished,
  inFlight,
  orphans,
  type Place,
  recorded,
  rl,
  type Running,
  show,
  start,
} from "./runs.ts";
import { SMALL, withFreshHome } from "./runs.ts";
import type { FaultEvent } from "./kill_points.ts";
import { endingOf, otherWork, type Undisturbed } from "./undisturbed.ts";

/** Brings runs to their end through what a test does to them. */

/** How often a run's engine died, and how many groups were being generated each time. */
type Survived = { deaths: number; flying: number; last: Finished };

/** Runs it, and goes on with it for as long as a fault kills the engine. */
export async function survive(
  place: Place,
  options: { run: string; config: string; overrides: readonly string[]; fault: string },
): Promise<Survived> {
  const { run, config, overrides, fault } = options;
  const env = { HOLDFAST_FAULT: fault };
  let last = await rl(["run", config, ...overrides, ...at(place), "--id", run], env);
  let [deaths, flying] = [0, 0];
  const most = fault.split(",").length;
  while (last.signal === "SIGKILL" && deaths < most) {
    deaths += 1;
    flying += inFlight((await recorded(place, run)).rows);
    last = await rl(["resume", run, ...at(place)], env);
  }
  return { deaths, flying, last };
}

/**
 * @throws {AssertionError} Unless the run has ended as the one to which nothing happened, and left no process behind.
 */
export async function assertEqualEnd(
  place: Place,
  run: string,
  against: Undisturbed,
): Promise<void> {
  const { head, rows } = await recorded(place, run);
  const ending = await endingOf(place, run);
  const wrong = [
    ...(head.status === "done" ? [] : [`the run is ${head.status}: ${head.error}`]),
    ...(ending.digest === against.digest
      ? []
      : [`the weights are ${ending.digest} instead of ${against.digest}`]),
    ...(ending.ledger === against.ledger
      ? []
      : [`the ledger is ${ending.ledger} instead of ${against.ledger}`]),
    ...brokenRules(head, rows),
    ...otherWork(ending, against),
  ];
  const survivors = await orphans(place.home);
  if (survivors > 0) wrong.push(`${survivors} processes outlived the run`);
  ok(wrong.length === 0, wrong.join("\n"));
}

/** A run that is going, as a test sees it that does something to it. */
export type Live = {
  place: Place;
  run: string;
  engine: Running;
  /** Settles when some process of the run has counted this event. */
  reached(place: string, event: string, n: number): Promise<void>;
  /** Process ids of a group's ranks; those of the agent for `agent`. */
  pids(group: string): Promise<number[]>;
};

type DisturbOptions = {
  overrides?: readonly string[];
  env?: Record<string, string>;
  store?: string | null;
  against: Undisturbed;
  /** Before the run: makes what it needs in its home. */
  prepare?: (home: string) => Promise<void>;
  /** While it goes. */
  disturb: (live: Live) => Promise<void>;
};
type Disturbed = {
  shown: Awaited<ReturnType<typeof show>>;
  rows: JournalRow[];
  finished: Finished;
};

/**
 * Runs `quickstart_small` in a home of its own, lets the test disturb it, and holds its end against
 * the undisturbed run's.
 */
export async function disturbed(options: DisturbOptions): Promise<Disturbed> {
  const { overrides = [], env = {}, store = null, against, prepare, disturb } = options;
  return await withFreshHome(async (home) => {
    await prepare?.(home);
    const place = { home, store };
    const run = `disturbed-${crypto.randomUUID().slice(0, 8)}`;
    const events = `${home}/events.jsonl`;
    const args = ["run", SMALL, ...overrides, ...at(place), "--id", run];
    const engine = start(args, { env: { HOLDFAST_EVENTS: events, ...env } });
    const reached: Live["reached"] = (of, event, n) =>
      until(`${of} has counted ${event} ${n}`, async () => {
        const lines = (await Deno.readTextFile(events).catch(() => "")).split("\n").slice(0, -1);
        return lines.map((line) => JSON.parse(line) as FaultEvent)
          .some((line) => line.place === of && line.event === event && line.n === n);
      });
    await disturb({ place, run, engine, reached, pids: (group) => pidsOf(home, { run, group }) });
    const finished = await engine.finished;
    const shown = await show(home, run, store);
    try {
      await assertEqualEnd(place, run, against);
    } catch (error) {
      console.error(finished.output);
      throw error;
    }
    return { shown, rows: (await recorded(place, run)).rows, finished };
  });
}

const UNTIL_MS = 120_000;

/** Looks until `holds` is true. @throws {Error} Naming what was waited for, after two minutes. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + UNTIL_MS;
  while (!await holds()) {
    if (performance.now() > deadline) {
      throw new Error(`Waited ${UNTIL_MS / 1000} s in vain until ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Whether a process stands still by a signal. */
export function isStopped(pid: number): boolean {
  try {
    const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
  } catch {
    return false;
  }
}

async function pidsOf(
  home: string,
  { run, group }: { run: string; group: string },
): Promise<number[]> {
  if (group === "agent") return await agents(home);
  const text = await Deno.readTextFile(`${home}/runs/${run}/workers.json`);
  const { workers } = JSON.parse(text) as { workers: { group: string; pid: number | null }[] };
  return workers.filter((worker) => worker.group === group).flatMap(({ pid }) => pid ?? []);
}

async function agents(home: string): Promise<number[]> {
  const found: number[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const line = await Deno.readTextFile(`/proc/${name}/cmdline`).catch(() => "");
    if (line.includes("holdfast_worker.agent") && line.includes(`${home}/`)) {
      found.push(Number(name));
    }
  }
  return found;
}
