/**
 * The shipped quickstart as benchmarks run it: real workers, in a temporary home.
 */
import { fileURLToPath } from "node:url";
import { type Config, loadConfig } from "../configs/mod.ts";
import type { EngineEvent } from "../engine/mod.ts";
import { flowDefinition, SHIPPED } from "../flows/mod.ts";
import { createRun, executeRun, Home } from "../runs/mod.ts";
import {
  ensureEnvironment,
  ensureRequirements,
  environmentKind,
  type EnvironmentProgress,
  type WorkersOptions,
} from "../workers/mod.ts";

export const ROOT = fileURLToPath(new URL("../", import.meta.url));
export const CONFIG = "configs/quickstart.yaml";
export type QuickstartConfig = Extract<Config, { flow: "quickstart" }>;

/**
 * What `--name number` flags say. @throws {RangeError} At a flag that is not one of `known`, or no
 * whole number.
 */
export function numberFlags<K extends string>(
  args: readonly string[],
  known: Record<K, number>,
): Record<K, number> {
  const found = { ...known };
  for (let i = 0; i < args.length; i += 2) {
    const name = args[i]!.replace(/^--/, "");
    const value = Number(args[i + 1]);
    if (!args[i]!.startsWith("--") || !(name in known) || !Number.isInteger(value) || value < 1) {
      const flags = Object.entries(known).map(([flag, usual]) => `--${flag} ${usual}`).join(" ");
      throw new RangeError(
        `Cannot read '${args.slice(i, i + 2).join(" ")}': there are ${flags}, whole numbers from 1`,
      );
    }
    found[name as K] = value;
  }
  return found;
}

/** The quickstart's interpreter, created on first use. */
export async function quickstartPython(): Promise<string> {
  return await ensureEnvironment(environmentKind("torch"), { onProgress: say });
}

/** The interpreter of the peer that training steps are compared with. */
export async function trlPython(): Promise<string> {
  const requirements = new URL("../tests/requirements/trl.txt", import.meta.url);
  return Deno.env.get("HOLDFAST_TEST_TRL_PYTHON") ??
    await ensureRequirements(requirements, { onProgress: say });
}

function say({ text }: EnvironmentProgress): void {
  console.error(text);
}

/** Calls `work` with an empty home, and removes it. */
export async function withBenchHome<T>(work: (dir: string) => Promise<T>): Promise<T> {
  const dir = await Deno.makeTempDir({ prefix: "holdfast_bench_" });
  try {
    return await work(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

export async function quickstartConfig(overrides: readonly string[]): Promise<QuickstartConfig> {
  return (await loadConfig(`${ROOT}${CONFIG}`, { overrides })).config as QuickstartConfig;
}

type Interval = { from_ms: number; to_ms: number };
type WorkersEvent = Parameters<NonNullable<WorkersOptions["onEvent"]>>[0];
export type Operation = Extract<WorkersEvent, { type: "operation" }>;
/** One round of the online loop and the worker operations that touched it. */
type TimedRound = Interval & { round: number; operations: Operation[] };

/** Runs the quickstart in this process and times its online rounds from the second on. */
export async function timedRounds(overrides: readonly string[]): Promise<TimedRound[]> {
  await quickstartPython();
  const config = await quickstartConfig(overrides);
  return await withBenchHome(async (dir) => (await timedRun(dir, config)).rounds);
}

/**
 * Runs a configuration in this process, times its online rounds from the second on, and adds up
 * what was generated.
 */
export async function timedRun(
  dir: string,
  config: Config,
): Promise<{ rounds: TimedRound[]; tokens: number }> {
  const home = Home.open(dir);
  const closed: number[] = [];
  const operations: Operation[] = [];
  try {
    const definition = flowDefinition(config.flow);
    const head = await createRun(home, definition, {
      config,
      id: "bench",
      entry: `${SHIPPED}${config.flow}`,
    });
    const outcome = await executeRun(home, { head, graph: definition.build(config) }, {
      onEvent: (event: EngineEvent) => {
        if (event.type === "round_closed" && event.loop === "round") closed.push(performance.now());
      },
      onWorkers: (event) => void (event.type === "operation" && operations.push(event)),
    });
    if (outcome.status !== "done") {
      throw new Error(
        `Cannot measure '${config.name ?? config.flow}' because its run ended as ${
          JSON.stringify(outcome)
        }`,
      );
    }
    const rows = await home.store.read("bench", { kinds: ["note/generated"], prefix: "round/" });
    const tokens = rows.reduce(
      (sum, { value }) => sum + (JSON.parse(value) as { tokens: number }).tokens,
      0,
    );
    const rounds = closed.slice(1).map((to_ms, i) => {
      const from_ms = closed[i]!;
      const touching = operations.filter(({ sent_ms, ended_ms }) =>
        ended_ms > from_ms && sent_ms < to_ms
      );
      return { round: i + 2, from_ms, to_ms, operations: touching };
    });
    return { rounds, tokens };
  } finally {
    await home.close();
  }
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

/** NaN of none. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Of numbers in any order; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  if (sorted.length === 0) return NaN;
  return sorted.length % 2
    ? sorted[Math.floor(middle)]!
    : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** To three decimals; null for what was not measured, as JSON has no NaN. */
export function rounded(value: number): number | null {
  return Number.isFinite(value) ? Math.round(value * 1000) / 1000 : null;
}

/** Standard output of a command. @throws {Error} With its output, if it fails. */
export async function commandOutput(
  command: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<string> {
  const options = { args, cwd: ROOT, env: { NO_COLOR: "1", ...env }, stdin: "null" } as const;
  const { code, stdout, stderr } = await new Deno.Command(command, {
    ...options,
    stdout: "piped",
    stderr: "piped",
  })
    .output();
  const text = new TextDecoder();
  if (code === 0) return text.decode(stdout);
  throw new Error(
    `Cannot measure as '${command} ${args.join(" ")}' ended with ${code}:\n${text.decode(stderr)}`,
  );
}
