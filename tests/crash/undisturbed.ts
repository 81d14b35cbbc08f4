import { processStart } from "../../engine/mod.ts";
import type { FaultEvent } from "./kill_points.ts";
import { completedKeys } from "./recorded_rules.ts";
import { at, type Place, recorded, rl, show, withFreshHome } from "./runs.ts";

/** How a run ended to which nothing happened, and what it went through. */
export type Undisturbed = {
  digest: string;
  ledger: string;
  /** Keys of all entries with a result. */
  completed: string[];
  /** Groups that were sampled. */
  groups: number;
  /** Policy versions that training made. */
  versions: number;
  /** Lines of metrics.jsonl without what says when, sorted: slabs of one round end in any order. */
  metrics: string[];
  events: FaultEvent[];
};

/**
 * One run of a configuration from its start to its end. @throws {Error} With its output, if it does
 * not end well.
 */
export async function undisturbed(
  config: string,
  options: { overrides?: readonly string[]; store?: string | null } = {},
): Promise<Undisturbed> {
  const { overrides = [], store = null } = options;
  return await withFreshHome(async (home) => {
    const place: Place = { home, store };
    const run = `undisturbed-${crypto.randomUUID().slice(0, 8)}`;
    const events = `${home}/events.jsonl`;
    const ended = await rl(["run", config, ...overrides, ...at(place), "--id", run], {
      HOLDFAST_EVENTS: events,
    });
    if (ended.code !== 0) {
      throw new Error(`Cannot compare because the undisturbed run failed:\n${ended.output}`);
    }
    const lines = (await Deno.readTextFile(events)).trim().split("\n");
    const ending = await endingOf(place, run);
    return { ...ending, events: lines.map((line) => JSON.parse(line) as FaultEvent) };
  });
}

/** What is compared of a run that has ended. */
export async function endingOf(place: Place, run: string): Promise<Omit<Undisturbed, "events">> {
  const { rows } = await recorded(place, run);
  const shown = await show(place.home, run, place.store);
  return {
    digest: shown.policy?.digest,
    ledger: JSON.stringify(shown.ledger),
    completed: completedKeys(rows),
    groups: shown.generated.groups,
    versions: rows.filter(({ kind }) => kind === "note/version").length,
    metrics: await metricsLines(`${place.home}/runs/${run}/metrics.jsonl`),
  };
}

type Line = { at_ms: number; metrics: Record<string, number> };

async function metricsLines(path: string): Promise<string[]> {
  const lines = (await Deno.readTextFile(path)).trimEnd().split("\n").map((line) =>
    JSON.parse(line) as Line
  );
  const timeless = (metrics: Line["metrics"]) =>
    Object.entries(metrics).filter(([name]) => !name.startsWith("time/"));
  return lines.map(({ at_ms: _, metrics, ...line }) =>
    JSON.stringify({ ...line, metrics: timeless(metrics) })
  ).sort();
}

/**
 * The same for every test file of this process: the first one runs it, the others read what it
 * found.
 */
export async function sharedUndisturbed(
  config: string,
  overrides: readonly string[] = [],
): Promise<Undisturbed> {
  const name = [config, ...overrides].join("_").replaceAll(/[^\w.=]/g, "_");
  const born = (processStart(Deno.pid) ?? "").replaceAll(/\W/g, "_");
  const dir = `${Deno.env.get("TMPDIR") ?? "/tmp"}/holdfast-undisturbed-${Deno.pid}-${born}`;
  const file = `${dir}/${name}.json`;
  const known = await Deno.readTextFile(file).catch(() => null);
  if (known) return JSON.parse(known) as Undisturbed;
  const reference = await undisturbed(config, { overrides });
  await Deno.mkdir(dir, { recursive: true });
  await Deno.writeTextFile(file, JSON.stringify(reference));
  return reference;
}

/**
 * Entries that only one of the two runs completed, whether both made as many versions, and lines of
 * metrics that differ.
 */
export function otherWork(ending: Omit<Undisturbed, "events">, against: Undisturbed): string[] {
  const missing = against.completed.filter((key) => !ending.completed.includes(key));
  const added = ending.completed.filter((key) => !against.completed.includes(key));
  return [
    ...missing.map((key) => `${key} has no result`),
    ...added.map((key) => `${key} has a result that the undisturbed run has not`),
    ...against.metrics.filter((line) => !ending.metrics.includes(line)).map((line) =>
      `metrics.jsonl lacks ${line}`
    ),
    ...(ending.metrics.length <= against.metrics.length
      ? []
      : ["metrics.jsonl has lines that it should not have"]),
    ...(ending.versions === against.versions
      ? []
      : [`${ending.versions} versions instead of ${against.versions}`]),
  ];
}
