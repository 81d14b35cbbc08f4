/**
 * A run that starts where a round of another run's loop has closed: the prefix is copied instead of
 * replayed.
 */
import { recordedField } from "../stores/recorded_head.ts";
import type { ArtifactStore } from "../files/artifacts.ts";
import { canonicalJson } from "../canonical.ts";
import { systemClock } from "../clock.ts";
import { DrainedError, InvalidInputError, ReplayDriftError, StageFailedError } from "../errors.ts";
import { Execution } from "./executor.ts";
import { ScopeRun } from "./scope.ts";
import { refsIn } from "../graph/graph.ts";
import { inner, wiringOf } from "../graph/draw.ts";
import { type Graph, type GraphNode, type LoopNode, Ref } from "../graph/types.ts";
import { Journal } from "../journal/journal.ts";
import { loadJournal } from "../journal/load.ts";
import type { RoundRecord } from "../journal/tree.ts";
import { isUnder } from "../graph/keys.ts";
import type { Configs } from "./recorded_input.ts";
import { recordedValue } from "../journal/recorded_value.ts";
import { markReopened } from "./reopened.ts";
import { DEFAULT_BACKOFF } from "./retry.ts";
import { Slots } from "../graph/slots.ts";
import type { JournalRow, NewRow, Parent, RunHead, Store } from "../stores/store.ts";

export type ForkOptions = {
  run: RunHead;
  /** The child's graph. It may differ from the parent's wherever the prefix does not reach. */
  graph: Graph;
  /** The run's own configuration as it is read today; without it, as it was recorded. */
  resolved?: unknown;
  /** Its form before settings that change no result were changed. */
  earlier?: readonly unknown[];
  /** A loop of the graph itself; without a name its last one. */
  loop?: string;
  /** The last inherited round; 0: none, only what the loop starts from. */
  round: number;
  /**
   * What the child reads differently although no input shows it: names of {@linkcode ForkPolicy}.
   */
  changed?: readonly string[];
  /** Whether the child continues after a round that ended the run's loop. */
  continues?: boolean;
  /** The overrides of the child's configuration, as the user wrote them. Only recorded. */
  overrides?: readonly string[];
};

/**
 * What a child starts with: the first rows of its journal, and where they come from.
 * @internal
 */
export type Prefix = { parent: Parent; loop: string; rows: NewRow[] };

/** Value of a child's `note/fork` row; its key is the parent's id. */
export type ForkNote = Parent & { loop: string; overrides: readonly string[] };

/** @internal */
type Reading = { store: Store; artifacts: ArtifactStore };

/**
 * The prefix of a fork: the closed round's row, the results that the loop starts from, and complete
 * results next to the loop that the child would request with the same input. Values are not copied:
 * rows refer to the same artifacts. Rounds that the run itself inherited are found in its parent.
 * @throws {InvalidInputError} If there is no such loop, or the round has not closed.
 * @throws {ReplayDriftError} If the child's configuration changes what the loop starts from.
 */
export async function prefixOf(reading: Reading, options: ForkOptions): Promise<Prefix> {
  const { graph, round, changed = [], overrides = [] } = options;
  const loop = forkedLoop(options);
  const { run, rounds } = await roundRows(reading, { run: options.run, loop, round });
  const before = upstream(graph, loop);
  const beside = graph.nodes.filter((node) => node !== loop && !upstream(graph, node).has(loop));
  const journal = new Journal({
    ...reading,
    run: run.id,
    epoch: 0,
    last_seq: run.last_seq,
    onBroken() {},
  });
  const config = options.resolved ?? recordedField(run, "config");
  const configs = { config, earlier: options.earlier };
  const failures = await replay(journal, {
    nodes: beside,
    graph,
    configs,
    begun: round > 0,
    changed,
  });
  for (const node of beside) {
    const failure = before.has(node) && failures.get(node);
    if (!failure || (isUntrained({ graph, node, round }) && isOpen(failure, graph))) {
      continue;
    }
    if (isAnew({ graph, node, failures })) continue;
    throw refusal(failure, { run, node, loop });
  }
  const whole = (node: GraphNode) =>
    !failures.has(node) &&
    (before.has(node) ||
      beside.every((other) => !failures.has(other) || !upstream(graph, other).has(node)));
  const taken = beside.filter(whole);
  const rows = (await Promise.all(taken.map((node) => rowsOf(reading, { run, node }))))
    .flat();
  const prefix = [...rows, ...rounds];
  const seq = Math.max(0, ...prefix.map((row) => row.seq));
  const parent = { run: run.id, round, seq };
  const note: ForkNote = { ...parent, loop: loop.name, overrides };
  const first: NewRow = { kind: "note/fork", key: run.id, value: canonicalJson(note) };
  const copies = prefix.map((row) =>
    row.kind === "round" ? closedRound(journal, row, options.continues && loop) : asNew(row)
  );
  return { parent, loop: loop.name, rows: [first, ...await Promise.all(copies)] };
}

/** The loop in which a fork's rounds are counted. */
export function forkedLoop(
  { run, graph, loop }: Pick<ForkOptions, "run" | "graph" | "loop">,
): LoopNode {
  const loops = graph.nodes.filter((node) => node.kind === "loop");
  const found = loop === undefined ? loops.at(-1) : loops.find(({ name }) => name === loop);
  if (found) return found;
  const has = loops.length === 0
    ? "its graph has no rounds"
    : `its loops are: ${loops.map(({ name }) => name)}`;
  throw new InvalidInputError(
    `Cannot fork run '${run.id}' at a round of '${loop ?? graph.name}' because ${has}`,
    {
      run: run.id,
    },
  );
}

type Place = { run: RunHead; loop: LoopNode; round: number };

/**
 * Rows of the round and of those that the next one may read, and the run that contains them: this
 * one or an ancestor.
 */
async function roundRows(
  reading: Reading,
  { run, loop, round }: Place,
): Promise<{ run: RunHead; rounds: JournalRow[] }> {
  const wanted = wantedRounds(loop, round);
  const closed = await readRounds(reading.store, { run: run.id, loop: loop.name });
  const rounds = closed.filter(({ key }) => wanted.includes(key));
  if (rounds.length === wanted.length) return { run, rounds };
  const above = run.parent && await reading.store.head(run.parent.run);
  if (above) return await roundRows(reading, { run: above, loop, round });
  const numbers = closed.map(({ key }) => Number(key.slice(loop.name.length + 1)));
  const has = numbers.length === 0
    ? "none of its rounds has closed"
    : `only its closed rounds ${numbers[0]} to ${numbers.at(-1)} are kept`;
  throw new InvalidInputError(
    `Cannot fork run '${run.id}' at round ${round} of '${loop.name}' because ${has}`,
    {
      run: run.id,
      round,
    },
  );
}

/** With a lag the next round reads further back than the last one. */
function wantedRounds({ name, lag }: LoopNode, round: number): string[] {
  const count = Math.min(round, lag + 1);
  return Array.from({ length: count }, (_, i) => `${name}/${round - count + 1 + i}`);
}

/** `round` rows of a loop itself, oldest first, without those of loops inside it. */
async function readRounds(
  store: Store,
  { run, loop }: { run: string; loop: string },
): Promise<JournalRow[]> {
  const rows = await store.read(run, { kinds: ["round"], prefix: `${loop}/` });
  return rows.filter(({ key }) => !key.slice(loop.length + 1).includes("/"));
}

/** The nodes of the top-level graph that a node reads, directly or through others. */
function upstream(graph: Graph, node: GraphNode): Set<GraphNode> {
  const found = new Set<GraphNode>();
  const visit = (reader: GraphNode) => {
    for (const source of graph.nodes) {
      if (found.has(source) || !reads(reader).has(source.id)) continue;
      found.add(source);
      visit(source);
    }
  };
  visit(node);
  return found;
}

/** Ids of all nodes that a node, and everything inside it, refers to. */
function reads(node: GraphNode): Set<number> {
  const refs = (of: GraphNode): Ref<unknown>[] => [
    ...refsIn(wiringOf(of)),
    ...inner(of).flatMap(({ scope }) => [...refsIn(scope.output), ...scope.nodes.flatMap(refs)]),
  ];
  return new Set(refs(node).flatMap(({ source }) => "node" in source ? [source.node] : []));
}

type Replaying = {
  nodes: readonly GraphNode[];
  graph: Graph;
  configs: Configs;
  /** Whether rounds were computed from what the stages recorded. */
  begun: boolean;
  changed: readonly string[];
};

/**
 * Requests from a run's journal what the child's graph would request, and starts nothing:
 * incomplete values fail. Returns the nodes whose values are missing, and why.
 */
async function replay(
  journal: Journal,
  { nodes, graph, configs, begun, changed }: Replaying,
): Promise<Map<GraphNode, Error>> {
  const { run, artifacts } = journal.options;
  const scope = { nodes: [...nodes], output: null };
  await loadJournal(journal, scope);
  // A child retries what a resume of its parent would retry.
  journal.reopened_seq = journal.last_seq;
  await markReopened(journal, { nodes: [...graph.nodes], output: graph.output });
  journal.close(new DrainedError(`Cannot append to run '${run}' because it is read-only here`));
  for (const node of nodes) {
    if (node.kind !== "stage") continue;
    const entry = journal.root.at(node.name);
    const { keeps, reads } = node.stage.fork ?? {};
    if (reads !== undefined && changed.includes(reads)) entry.forget();
    else if (keeps && begun) entry.input_hash = undefined;
  }
  const settings = {
    run,
    epoch: 0,
    seed: 0,
    graph_hash: graph.hash,
    configs,
    journal,
    artifacts,
    clock: systemClock,
  };
  const reader = new ReadingOnly({
    ...settings,
    slots: new Slots(),
    backoff: DEFAULT_BACKOFF,
    resources: new Map(),
  });
  reader.drain();
  const root = new ScopeRun(reader, { scope, path: "" });
  await root.start().catch(() => {}); // Told node by node.
  const failures = new Map<GraphNode, Error>();
  await Promise.all(nodes.map(async (node) => {
    await root.resolve(new Ref({ from: "node", node: node.id })).catch((error) =>
      failures.set(node, error)
    );
  }));
  return failures;
}

/** An execution that refuses unrecorded work instead of starting it. */
class ReadingOnly extends Execution {
  override park<T>(): Promise<T> {
    return Promise.reject(
      new DrainedError(
        `Cannot continue with run '${this.settings.run}' because it is read-only ` +
          `here`,
      ),
    );
  }
}

/**
 * Whether nothing was trained for a node that the first round starts from, so the child can request
 * it itself.
 */
function isUntrained(
  { graph, node, round }: { graph: Graph; node: GraphNode; round: number },
): boolean {
  return round === 0 && ![node, ...upstream(graph, node)].some(({ kind }) => kind === "loop");
}

/**
 * Whether the child may request a node itself: it is a stage that declares so, or reads what such a
 * stage outputs now, and nothing was trained in between.
 */
function isAnew(
  { graph, node, failures }: {
    graph: Graph;
    node: GraphNode;
    failures: ReadonlyMap<GraphNode, Error>;
  },
): boolean {
  const declares = (one: GraphNode) => one.kind === "stage" && one.stage.fork?.anew === true;
  if (declares(node)) return true;
  const failure = failures.get(node);
  if (!(failure instanceof ReplayDriftError)) return false;
  const cause = graph.nodes.find(({ name }) => name === failure.facts.key);
  return cause !== undefined && declares(cause) &&
    ![node, ...upstream(graph, node)].some((one) => one.kind === "loop" && failures.has(one));
}

/**
 * Whether a node is missing because it was not reached, or because a stage that may change would
 * receive something else.
 */
function isOpen(failure: Error, graph: Graph): boolean {
  if (failure instanceof DrainedError) return true;
  if (!(failure instanceof ReplayDriftError)) return false;
  const node = graph.nodes.find(({ name }) => name === failure.facts.key);
  return node?.kind === "stage" && node.stage.fork?.keeps === true;
}

type Missing = { run: RunHead; node: GraphNode; loop: LoopNode };

/** Why a fork cannot start without a node. */
function refusal(failure: Error, { run, node, loop }: Missing): Error {
  if (failure instanceof StageFailedError) {
    const { key } = failure.facts;
    const why = failure.cause instanceof Error ? failure.cause.message : failure.message;
    return new InvalidInputError(
      `Cannot fork run '${run.id}' before its first round because '${key}' failed, and the fork ` +
        "would request the same. " +
        "Fix: add a setting with which it passes, as a.b=c; or fix the cause and resume the " +
        `run. It failed with: ${why}`,
      { run: run.id, key },
    );
  }
  if (!(failure instanceof DrainedError)) return failure;
  return new InvalidInputError(
    `Cannot fork run '${run.id}' before it has finished '${node.name}', which ` +
      `'${loop.name}' starts from`,
    { run: run.id, key: node.name },
  );
}

type Taking = { run: RunHead; node: GraphNode };

/**
 * The recorded results of a node without the entries inside its bodies; for a loop, the results of
 * its last rounds.
 */
async function rowsOf({ store }: Reading, { run, node }: Taking): Promise<JournalRow[]> {
  if (node.kind === "flat") return [];
  if (node.kind === "loop") {
    return (await readRounds(store, { run: run.id, loop: node.name })).slice(-(node.lag + 1));
  }
  const found = await store.read(run.id, { kinds: ["result", "round"], prefix: node.name });
  const rows = found.filter(({ key }) => isUnder(key, node.name));
  const results = new Set(rows.map(({ key }) => key));
  const top = rows.filter(({ key }) => !above(key).some((parent) => results.has(parent)));
  if (node.kind !== "stage" || !node.stage.fork?.keeps) return top;
  // Without a hash, a replay accepts it for any input.
  return top.map(({ input_hash: _, ...row }) => row);
}

/** `a/b/c`: `a/b`, `a`. */
function above(key: string): string[] {
  const parts = key.split("/");
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join("/"));
}

/**
 * A round's row for the child, whose journal has no rows of later rounds. `continues`: the loop
 * that the child continues even if this round ended it.
 */
async function closedRound(
  journal: Journal,
  row: JournalRow,
  continues: LoopNode | false | undefined,
): Promise<NewRow> {
  const record = await journal.fetch(recordedValue(row)) as RoundRecord;
  const until = record.until && !(continues && isUnder(row.key, continues.name));
  return await journal.row("round", row.key, { ...record, until, open_after_seq: 0 });
}

function asNew({ kind, key, input_hash, value }: JournalRow): NewRow {
  return input_hash === undefined ? { kind, key, value } : { kind, key, input_hash, value };
}
