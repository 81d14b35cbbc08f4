/** The shipped quickstart as benchmarks run it: real workers, a temporary home, the repository's own environment. */
import { fileURLToPath } from "node:url";
import { type Config, loadConfig } from "../configs/mod.ts";
import type { EngineEvent } from "../engine/mod.ts";
import { createRun, executeRun, flowDefinition, Home, SHIPPED } from "../flows/mod.ts";
import { ensureEnvironment, type WorkersOptions } from "../workers/mod.ts";

export const ROOT = fileURLToPath(new URL("../", import.meta.url));
export const CONFIG = "configs/quickstart.yaml";
export type QuickstartConfig = Extract<Config, { flow: "quickstart" }>;

/** What `--name number` flags say. @throws {RangeError} At a flag that is not one of `known`, or no whole number. */
export function numberFlags<K extends string>(args: readonly string[], known: Record<K, number>): Record<K, number> {
  const found = { ...known };
  for (let i = 0; i < args.length; i += 2) {
    const name = args[i]!.replace(/^--/, "");
    const value = Number(args[i + 1]);
    if (!args[i]!.startsWith("--") || !(name in known) || !Number.isInteger(value) || value < 1) {
      const flags = Object.entries(known).map(([flag, usual]) => `--${flag} ${usual}`).join(" ");
      throw new RangeError(`Cannot read '${args.slice(i, i + 2).join(" ")}': there are ${flags}, whole numbers from 1`);
    }
    found[name as K] = value;
  }
  return found;
}

/** The quickstart's interpreter, in the repository's own home. Made on first use, which takes minutes. */
export async function quickstartPython(): Promise<string> {
  let said = "";
  const onProgress = ({ kind, step }: { kind: string; step: string }) => {
    if (step !== said) console.error(`environment ${kind}: ${step}`);
    said = step;
  };
  return await ensureEnvironment("torch", { home: `${ROOT}.holdfast`, onProgress });
}

/** Calls `work` with an empty home that shares the repository's environments, and removes it. */
export async function withBenchHome<T>(work: (dir: string) => Promise<T>): Promise<T> {
  const dir = await Deno.makeTempDir({ prefix: "holdfast_bench_" });
  try {
    await Deno.symlink(`${ROOT}.holdfast/env`, `${dir}/env`);
    return await work(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

export async function quickstartConfig(overrides: readonly string[]): Promise<QuickstartConfig> {
  return (await loadConfig(`${ROOT}${CONFIG}`, { overrides })).config as QuickstartConfig;
}

export type Interval = { from_ms: number; to_ms: number };
type WorkersEvent = Parameters<NonNullable<WorkersOptions["onEvent"]>>[0];
export type Operation = Extract<WorkersEvent, { type: "operation" }>;
/** One round of the online loop and the worker operations that touched it. */
export type TimedRound = Interval & { round: number; operations: Operation[] };

/** Runs the quickstart in this process and times its online rounds from the second on. */
export async function timedRounds(overrides: readonly string[]): Promise<TimedRound[]> {
  await quickstartPython();
  const config = await quickstartConfig(overrides);
  return await withBenchHome(async (dir) => {
    const home = Home.open(dir);
    const closed: number[] = [];
    const operations: Operation[] = [];
    try {
      const definition = flowDefinition("quickstart");
      const head = await createRun(home, definition, { config, id: "bench", entry: `${SHIPPED}quickstart` });
      const outcome = await executeRun(home, { head, graph: definition.build(config) }, {
        onEvent: (event: EngineEvent) => {
          if (event.type === "round_closed" && event.loop === "round") closed.push(performance.now());
        },
        onWorkers: (event) => void (event.type === "operation" && operations.push(event)),
      });
      if (outcome.status !== "done") {
        throw new Error(`Cannot measure the quickstart as its run ended as ${JSON.stringify(outcome)}`);
      }
    } finally {
      await home.close();
    }
    return closed.slice(1).map((to_ms, i) => {
      const from_ms = closed[i]!;
      const touching = operations.filter(({ sent_ms, ended_ms }) => ended_ms > from_ms && sent_ms < to_ms);
      return { round: i + 2, from_ms, to_ms, operations: touching };
    });
  });
}

/** The part of an interval in which none of `busy` runs; they may overlap. */
export function idleShare({ from_ms, to_ms }: Interval, busy: readonly Interval[]): number {
  let [idle_ms, reached_ms] = [0, from_ms];
  for (const one of busy.toSorted((a, b) => a.from_ms - b.from_ms)) {
    idle_ms += Math.max(0, Math.min(one.from_ms, to_ms) - reached_ms);
    reached_ms = Math.max(reached_ms, one.to_ms);
  }
  return (idle_ms + Math.max(0, to_ms - reached_ms)) / (to_ms - from_ms);
}

/** Of numbers in any order; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  if (sorted.length === 0) return NaN;
  return sorted.length % 2 ? sorted[Math.floor(middle)]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** To three decimals; null for what was not measured, as JSON has no NaN. */
export function rounded(value: number): number | null {
  return Number.isFinite(value) ? Math.round(value * 1000) / 1000 : null;
}
