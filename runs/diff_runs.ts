/** Where two runs diverge: in their configurations, their work, and their results. Only reads. */
import type { SettingChange } from "../configs/mod.ts";
import { Batch, decodeSlab, type GeneratedSlab, VersionRecord } from "../data/mod.ts";
import {
  type ArtifactStore,
  canonicalJson,
  type JournalRow,
  recordedAs,
  recordedField,
  type RunHead,
  type Store,
} from "../engine/mod.ts";
import { type Recovery, type Replan, VersionNote } from "../workers/mod.ts";
import { type ClosedRound, closedRound } from "./forks/carried_versions.ts";
import type { Ledger } from "../flows/mod.ts";
import { readTakenOver } from "./forks/lineage.ts";
import { runView } from "./run_view.ts";

/** One value of each run; undefined where a run has none. */
export type Pair<T> = { a: T; b: T };
/** A value that differs between two runs, by its path. */
export type Difference = { path: string } & Partial<Pair<unknown>>;
/** The first round of a loop in which something differs. */
export type FirstDifference = { round: string; what: string[] };

/** The differences between two runs. */
export type RunDiff = Pair<string> & {
  /**
   * Neither results nor anything that determines them differ. Recoveries, replans and changed
   * settings may differ.
   */
  equal: boolean;
  config: Difference[];
  graph: { only_a: string[]; only_b: string[] };
  packages: Difference[];
  /**
   * The number of closed rounds of each loop, and the rounds from which versions, batches and
   * losses differ.
   */
  loops: (
    & Pair<number>
    & { loop: string }
    & Record<"versions" | "batches" | "losses", FirstDifference | null>
  )[];
  ledger: Difference[];
  digest: Pair<string | null>;
  replans: Pair<Replan[]>;
  /**
   * Settings of only one run that have changed since its `config`: by a resume, or in its parent
   * before a fork.
   */
  settings: Pair<SettingChange[]>;
  /** How often the run recovered from each cause. */
  recoveries: Pair<Record<string, number>>;
};

/** @internal */
type Reading = { store: Store; artifacts: ArtifactStore };

/** Compares two runs of one store, including what forks inherited. */
export async function diffRuns(reading: Reading, { a, b }: Pair<RunHead>): Promise<RunDiff> {
  const [ranA, ranB] = [await ran(reading, a), await ran(reading, b)];
  const config = differences(recordedField(a, "config"), recordedField(b, "config"));
  const graph = graphDifference(a, b);
  const packages = differences(recordedField(a, "packages"), recordedField(b, "packages"));
  const loops = await loopDifferences(reading.artifacts, { a: ranA, b: ranB });
  const ledger = differences(ranA.ledger, ranB.ledger);
  const digest = { a: ranA.digest, b: ranB.digest };
  const alike = loops.every((loop) => loop.a === loop.b && !loop.versions && !loop.losses);
  const changes = config.length + graph.only_a.length + graph.only_b.length + packages.length;
  return {
    a: a.id,
    b: b.id,
    equal: changes === 0 && alike && ledger.length === 0 && digest.a === digest.b,
    config,
    graph,
    packages,
    loops,
    ledger,
    digest,
    replans: { a: ranA.replans, b: ranB.replans },
    settings: {
      a: without(ranA.settings, ranB.settings),
      b: without(ranB.settings, ranA.settings),
    },
    recoveries: { a: ranA.recoveries, b: ranB.recoveries },
  };
}

type Ran = {
  rounds: Map<string, ClosedRound>;
  versions: Map<string, VersionNote>;
  ledger: Ledger;
  digest: string | null;
  replans: Replan[];
  settings: SettingChange[];
  recoveries: Record<string, number>;
};

async function ran({ store, artifacts }: Reading, head: RunHead): Promise<Ran> {
  const query = { kinds: ["round", "note/version"] satisfies JournalRow["kind"][] };
  const rows = [...await readTakenOver(store, head, query), ...await store.read(head.id, query)];
  const closed = await Promise.all(rows.map((row) => closedRound(artifacts, row)));
  const noted = rows.filter(({ kind }) => kind === "note/version");
  const view = await runView(store, head, { workers: [], metrics: {} });
  return {
    rounds: new Map(closed.flatMap((one) => one ? [[`${one.loop}/${one.round}`, one]] : [])),
    versions: new Map(noted.map((row) => [row.key, recordedAs(row, VersionNote.parse)])),
    ledger: view.ledger,
    digest: view.policy?.digest ?? null,
    replans: view.replans,
    settings: view.settings,
    recoveries: countBy(view.recoveries),
  };
}

function without(changes: SettingChange[], others: SettingChange[]): SettingChange[] {
  const known = new Set(others.map((change) => text(change)));
  return changes.filter((change) => !known.has(text(change)));
}

function countBy(recoveries: Recovery[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { cause } of recoveries) counts[cause] = (counts[cause] ?? 0) + 1;
  return counts;
}

/** Leaves that differ, by path, in the order of the paths. */
function differences(a: unknown, b: unknown, path = ""): Difference[] {
  if (isBlock(a) && isBlock(b)) {
    const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
    return names.flatMap((name) =>
      differences(a[name], b[name], path === "" ? name : `${path}.${name}`)
    );
  }
  return text(a) === text(b) ? [] : [{ path, a, b }];
}

function isBlock(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

const text = (value: unknown) => value === undefined ? "" : canonicalJson(value);

function graphDifference(a: RunHead, b: RunHead): RunDiff["graph"] {
  const lines = (head: RunHead) =>
    new Set((recordedField(head, "graph") as { lines?: string[] }).lines ?? []);
  const [ofA, ofB] = [lines(a), lines(b)];
  return { only_a: [...ofA.difference(ofB)], only_b: [...ofB.difference(ofA)] };
}

async function loopDifferences(
  artifacts: ArtifactStore,
  { a, b }: Pair<Ran>,
): Promise<RunDiff["loops"]> {
  const loops = new Set([...a.rounds.values(), ...b.rounds.values()].map(({ loop }) => loop));
  return await Promise.all([...loops].map(async (loop) => {
    const [inA, inB] = [roundsOf(a, loop), roundsOf(b, loop)];
    const found: RunDiff["loops"][number] = {
      loop,
      a: inA.at(-1)?.round ?? 0,
      b: inB.at(-1)?.round ?? 0,
      versions: null,
      batches: null,
      losses: null,
    };
    for (const { round } of inA) {
      const key = `${loop}/${round}`;
      const [left, right] = [a.rounds.get(key)!, b.rounds.get(key)];
      if (!right || text(left.versions) === text(right.versions)) continue;
      const difference = await compareRounds(artifacts, {
        a: { ran: a, round: left },
        b: { ran: b, round: right },
      });
      for (const name of ["versions", "batches", "losses"] as const) {
        if (difference[name].length > 0) found[name] ??= { round: key, what: difference[name] };
      }
      if (found.versions && found.batches && found.losses) break;
    }
    return found;
  }));
}

function roundsOf({ rounds }: Ran, loop: string): ClosedRound[] {
  return [...rounds.values()].filter((one) => one.loop === loop).sort((x, y) => x.round - y.round);
}

type Differences = Record<"versions" | "batches" | "losses", string[]>;
type RoundOf = { ran: Ran; round: ClosedRound };

/**
 * The models that two rounds passed on, by name. Texts about models except the policy start with
 * the model's name.
 */
async function compareRounds(
  artifacts: ArtifactStore,
  { a, b }: Pair<RoundOf>,
): Promise<Differences> {
  const found: Differences = { versions: [], batches: [], losses: [] };
  for (const name of new Set([...Object.keys(a.round.carried), ...Object.keys(b.round.carried)])) {
    const [left, right] = [a, b].map(({ round }) => round.carried[name]);
    if (left === right) continue;
    const noted = ({ ran }: RoundOf, version: string | undefined) =>
      ran.versions.get(version ?? "");
    const one = await compareVersions(artifacts, { a: noted(a, left), b: noted(b, right) });
    const of = name === "policy" ? "" : `${name}: `;
    for (const part of ["versions", "batches", "losses"] as const) {
      found[part].push(...one[part].map((text) => of + text));
    }
  }
  return found;
}

/**
 * The parts in which two versions differ: the parts of a version's id, the content of its batch,
 * and the results of its steps.
 */
async function compareVersions(
  artifacts: ArtifactStore,
  { a, b }: Pair<VersionNote | undefined>,
): Promise<Differences> {
  if (!a || !b) return { versions: ["one of them is no longer recorded"], batches: [], losses: [] };
  const [left, right] = await Promise.all(
    [a, b].map(async ({ record }) => VersionRecord.parse(await artifacts.getJson(record))),
  );
  const parts = differences({ ...left, batch: null, loss: null }, {
    ...right,
    batch: null,
    loss: null,
  });
  const versions = parts.map(({ path, ...values }) =>
    path === "parent" ? path : `${path} ${shown(values)}`
  );
  if (left!.kind !== "trained" || right!.kind !== "trained") {
    return { versions, batches: [], losses: [] };
  }
  if (left!.loss.sha256 !== right!.loss.sha256) versions.push("the loss's expression");
  const same = left!.batch.sha256 === right!.batch.sha256;
  const batches = same ? [] : await compareBatches(artifacts, { a: left!.batch, b: right!.batch });
  if (!same) versions.push("the batch");
  return { versions, batches, losses: compareSteps(a.steps, b.steps) };
}

function shown({ a, b }: Partial<Pair<unknown>>): string {
  return `${text(a) || "-"} -> ${text(b) || "-"}`;
}

function compareSteps(a: VersionNote["steps"], b: VersionNote["steps"]): string[] {
  if (a.length !== b.length) return [`${a.length} -> ${b.length} optimizer steps`];
  const names = ["loss", "grad_norm", "lr", "n_tokens"] as const;
  return a.flatMap((step, i) =>
    names.filter((name) => !Object.is(step[name], b[i]![name])).map((name) =>
      `${name}${a.length > 1 ? ` of step ${i + 1}` : ""} ${step[name]} -> ${b[i]![name]}`
    )
  );
}

type Trajectories = Extract<Batch, { kind: "trajectories" }>;

/** The differences between two batches, from the draws to the values computed from them. */
async function compareBatches(
  artifacts: ArtifactStore,
  refs: Pair<VersionNote["record"]>,
): Promise<string[]> {
  const [a, b] = await Promise.all(
    [refs.a, refs.b].map(async (ref) => Batch.parse(await artifacts.getJson(ref))),
  );
  if (a!.kind !== "trajectories" || b!.kind !== "trajectories") {
    return [`rows (${a!.kind} -> ${b!.kind})`];
  }
  const parts: [string, (batch: Trajectories) => unknown][] = [
    ["draws", ({ groups }) => groups.map(({ draw }) => draw)],
    ["samples", ({ groups }) => sampledTokens(artifacts, groups)],
    ["columns", ({ columns }) => columns],
    ["optimizer steps", ({ updates }) => updates],
    ["temperature", ({ temperature }) => temperature],
  ];
  const found: string[] = [];
  for (const [name, of] of parts) if (text(await of(a!)) !== text(await of(b!))) found.push(name);
  return found;
}

/**
 * Tokens of every sample. A slab also names the version that sampled it, so two of equal tokens may
 * be two artifacts.
 */
async function sampledTokens(
  artifacts: ArtifactStore,
  groups: Trajectories["groups"],
): Promise<string[]> {
  const slabs = new Map(groups.map(({ slab }) => [slab.sha256, slab]));
  const decoded = new Map<string, GeneratedSlab>();
  for (const [name, ref] of slabs) decoded.set(name, decodeSlab(await artifacts.get(ref)));
  return groups.flatMap(({ slab, index, samples }) => {
    const { trajectories } = decoded.get(slab.sha256)!.groups[index]!;
    return samples.map((sample) => trajectories[sample]!.tokens.join(" "));
  });
}
