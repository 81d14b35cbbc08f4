/**
 * What a resume with new budgets retries. A failure that was recorded as a result is accepted once
 * a stage that reads it has a result: then it stays. A failure that no stage has accepted is
 * retried, wherever it is and whatever failed the run.
 */
import { refsIn } from "../graph/graph.ts";
import { wiringOf } from "../graph/draw.ts";
import type {
  GraphNode,
  LoopNode,
  MapNode,
  Ref,
  RefSource,
  Scope,
  StageNode,
} from "../graph/types.ts";
import type { Journal } from "../journal/journal.ts";
import type { Entry } from "../journal/tree.ts";
import { isUnder, joinKey } from "../graph/keys.ts";

/**
 * A scope of the run as far as it got. `flag`: the condition of a branch; `round`: that of a loop's
 * body.
 */
type Level = {
  scope: Scope;
  path: string;
  up?: Level;
  flag?: Ref<unknown>;
  round?: { loop: LoopNode; number: number };
};
/** A node of such a scope. `closed`: its round is over, and everything that it read is accepted. */
type Place = {
  node: StageNode | MapNode;
  key: string;
  entries: Entry[];
  reads: string[];
  closed: boolean;
};

/**
 * Marks what is retried, and what may have a different input because it was computed from that.
 * Reads outputs of stages that can report failures.
 */
export async function markReopened(journal: Journal, graph: Scope): Promise<void> {
  if (journal.reopened_seq === 0) return;
  const places = [...new Walk(journal).places({ scope: graph, path: "" })];
  const failures = new Failures(journal, places);
  const changed = new Set<Place>();
  for (const place of places) {
    const again = await failures.notAccepted(place);
    for (const entry of again) entry.tried_again = true;
    if (again.length > 0 || place.entries.some((entry) => isNewer(entry, journal))) {
      changed.add(place);
    }
  }
  for (const place of changed) { // A set is walked to its end, with what is added meanwhile.
    for (const reader of readersOf(place, places)) {
      changed.add(reader);
      for (const entry of reader.entries) entry.may_change = true;
    }
  }
}

function isNewer({ result, recorded_seq }: Entry, { reopened_seq }: Journal): boolean {
  return result !== undefined && recorded_seq > reopened_seq;
}

function readersOf(place: Place, places: readonly Place[]): Place[] {
  return places.filter(({ reads }) => reads.includes(place.key));
}

/** Which recorded results report failures, and which nodes have accepted them. */
class Failures {
  readonly #accepted = new Map<Place, Promise<boolean>>();

  constructor(readonly journal: Journal, readonly places: readonly Place[]) {}

  /** Those of a node from before the resume that are retried. */
  async notAccepted(place: Place): Promise<Entry[]> {
    const older = place.entries.filter(({ result, recorded_seq }) =>
      result !== undefined && recorded_seq <= this.journal.reopened_seq
    );
    const verdicts = await Promise.all(older.map((entry) => this.#saysFailed(place, entry)));
    const failed = older.filter((_, i) => verdicts[i]);
    return failed.length === 0 || await this.#isAccepted(place) ? [] : failed;
  }

  async #saysFailed({ node: { stage } }: Place, { key, result }: Entry): Promise<boolean> {
    if (stage.failed === undefined || result === undefined) return false;
    const output = Promise.resolve(result).then((text) => this.journal.output(key, text));
    // A lost record is reported when it is needed.
    return await output.then((value) => stage.failed!(value), () => false);
  }

  /** Every node that reads it has a result from it, in some round. */
  #isAccepted(place: Place): Promise<boolean> {
    const known = this.#accepted.get(place) ?? this.#isAcceptedBy(readersOf(place, this.places));
    this.#accepted.set(place, known);
    return known;
  }

  async #isAcceptedBy(readers: readonly Place[]): Promise<boolean> {
    const byNode = Map.groupBy(readers, ({ node }) => node.id);
    for (const same of byNode.values()) {
      const accepts = await Promise.all(same.map((reader) => this.#accepts(reader)));
      if (!accepts.includes(true)) return false;
    }
    return byNode.size > 0;
  }

  /**
   * A map over items accepts nothing, and neither does a failure that is retried: their readers do.
   */
  async #accepts(reader: Place): Promise<boolean> {
    if (reader.closed) return true;
    const [entry] = reader.entries;
    if (reader.node.kind === "map" || (entry && await this.#saysFailed(reader, entry))) {
      return this.#isAccepted(reader);
    }
    return entry?.result !== undefined;
  }
}

/**
 * The nodes of a run with what they read, by key: rounds that are open, else the last one that
 * closed, else the first.
 */
class Walk {
  constructor(readonly journal: Journal) {}

  *places(level: Level, closed = false): Generator<Place> {
    for (const node of level.scope.nodes) {
      if (node.kind === "flat") continue;
      const key = joinKey(level.path, node.name);
      if (node.kind === "stage" || node.kind === "map") {
        yield {
          node,
          key,
          closed,
          entries: this.#entries(node, level.path),
          reads: this.#reads(node, level),
        };
      } else if (node.kind === "when") {
        for (const branch of this.#branches(node, level)) yield* this.places(branch, closed);
      } else {
        for (const round of this.#rounds(key)) {
          yield* this.places(
            roundOf(node, { up: level, number: round.number }),
            closed || round.closed,
          );
        }
      }
    }
  }

  #children(path: string): ReadonlyMap<string, Entry> {
    let entry: Entry | undefined = this.journal.root;
    for (const segment of path === "" ? [] : path.split("/")) entry = entry?.children.get(segment);
    return entry?.children ?? new Map();
  }

  #entries({ kind, name }: StageNode | MapNode, path: string): Entry[] {
    const children = this.#children(path);
    if (kind === "stage") return [children.get(name)].filter((entry) => entry !== undefined);
    return [...children].filter(([segment]) => segment !== name && isUnder(segment, name)).map((
      [, entry],
    ) => entry);
  }

  /** The branch that was taken, or both. */
  #branches(node: GraphNode & { kind: "when" }, up: Level): Level[] {
    const path = joinKey(up.path, node.name);
    const taken = this.#children(path);
    return (["then", "otherwise"] as const).filter((side) => taken.size === 0 || taken.has(side))
      .map((side) => ({ scope: node[side], path: `${path}/${side}`, up, flag: node.flag }));
  }

  #rounds(loop: string): { number: number; closed: boolean }[] {
    const last = this.journal.rounds.get(loop)?.at(-1)?.round;
    const open = [...this.#children(loop).keys()].map(Number).filter((number) =>
      number > (last ?? 0)
    );
    const rounds = open.map((number) => ({ number, closed: false }));
    if (last !== undefined) return [{ number: last, closed: true }, ...rounds];
    return rounds.length > 0 ? rounds : [{ number: 1, closed: false }];
  }

  #reads(node: GraphNode, level: Level): string[] {
    const keys = refsIn(wiringOf(node)).flatMap(({ source }) => this.#keys(source, level));
    const flags: string[] = [];
    for (let at: Level | undefined = level; at; at = at.up) {
      if (at.flag && at.up) flags.push(...this.#keys(at.flag.source, at.up));
    }
    return [...keys, ...flags];
  }

  /** Keys of the stages and maps that a reference leads to, directly or through other nodes. */
  #keys(source: RefSource, level: Level): string[] {
    const through = (wiring: unknown, at: Level) =>
      refsIn(wiring).flatMap((ref) => this.#keys(ref.source, at));
    if (source.from === "carried") {
      const body = above(level, ({ round }) => round?.loop.id === source.loop);
      const { loop, number } = body.round!;
      const from = number - 1 - source.lag;
      if (from <= 0) return through(loop.carry[source.name], body.up!);
      return through(outputOf(loop, source.name), roundOf(loop, { up: body.up!, number: from }));
    }
    if (!("node" in source)) return [];
    const at = above(level, ({ scope }) => scope.nodes.some(({ id }) => id === source.node));
    const node = at.scope.nodes.find(({ id }) => id === source.node)!;
    const key = joinKey(at.path, node.name);
    switch (node.kind) {
      case "flat":
        return through(node.list, at);
      case "when":
        return this.#branches(node, at).flatMap((branch) => through(branch.scope.output, branch));
      case "loop":
        return this.#rounds(key).flatMap(({ number }) =>
          through(
            outputOf(node, "carried" in source ? source.carried : ""),
            roundOf(node, { up: at, number }),
          )
        );
      default:
        return [key];
    }
  }
}

function above(level: Level, found: (level: Level) => boolean): Level {
  for (let at: Level | undefined = level; at; at = at.up) if (found(at)) return at;
  throw new RangeError(`Cannot read for '${level.path}' a value that no enclosing scope has`);
}

function roundOf(loop: LoopNode, { up, number }: { up: Level; number: number }): Level {
  return {
    scope: loop.body,
    path: joinKey(up.path, `${loop.name}/${number}`),
    up,
    round: { loop, number },
  };
}

function outputOf({ body }: LoopNode, name: string): unknown {
  return (body.output as Record<string, unknown>)[name];
}
