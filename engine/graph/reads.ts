/** What nodes read: of the node behind a journal key, as keys; of those outside loops, which loops. */
import { refsIn } from "./graph.ts";
import { inner, wiringOf } from "./draw.ts";
import type { Graph, GraphNode, LoopNode, RefSource, Scope } from "./types.ts";
import { joinKey } from "./keys.ts";

/** A scope on the way to a node, with its path; `round` in the body of a loop. */
type Level = { scope: Scope; path: string; loop?: { node: LoopNode; path: string; round: number } };

/**
 * Prefixes of the keys that the node of `key` reads: `round/3/score` reads `round/3/sample`. None
 * if no node belongs to the key.
 */
export function keysRead(graph: Graph, key: string): string[] {
  const found = nodeOf(graph, key);
  return found
    ? [
      ...new Set(
        refsIn(wiringOf(found.node)).flatMap(({ source }) => keysOf(source, found.levels)),
      ),
    ]
    : [];
}

function nodeOf(graph: Graph, key: string): { node: GraphNode; levels: Level[] } | null {
  const levels: Level[] = [{ scope: { nodes: [...graph.nodes], output: graph.output }, path: "" }];
  const parts = key.split("/");
  for (let i = 0; i < parts.length; i++) {
    const { scope, path } = levels.at(-1)!;
    const node = scope.nodes.find(({ name }) => name === parts[i]!.split("#")[0]);
    if (!node) return null;
    const below = parts[i + 1];
    const inside = joinKey(path, `${node.name}/${below}`);
    if (node.kind === "loop" && below !== undefined) {
      const loop = { node, path: joinKey(path, node.name), round: Number(below) };
      levels.push({ scope: node.body, path: inside, loop });
    } else if (node.kind === "when" && below !== undefined) {
      levels.push({ scope: below === "then" ? node.then : node.otherwise, path: inside });
    } else {
      // Below a stage are the entries of its body.
      return i === parts.length - 1 ? { node, levels } : null;
    }
    i++;
  }
  return null;
}

function keysOf(source: RefSource, levels: readonly Level[]): string[] {
  switch (source.from) {
    case "node":
    case "loop": {
      const level = levels.findLast(({ scope }) =>
        scope.nodes.some(({ id }) => id === source.node)
      );
      const node = level?.scope.nodes.find(({ id }) => id === source.node);
      if (!level || !node) return [];
      if (node.kind === "flat") {
        return refsIn(node.list).flatMap((ref) => keysOf(ref.source, levels));
      }
      return [joinKey(level.path, node.name)];
    }
    case "carried": {
      const at = levels.findIndex(({ loop }) => loop?.node.id === source.loop);
      const { node, path, round } = levels[at]!.loop!;
      const from = round - 1 - source.lag;
      if (from > 0) return [joinKey(path, String(from))];
      return refsIn(node.carry[source.name]).flatMap((ref) =>
        keysOf(ref.source, levels.slice(0, at))
      );
    }
    default:
      return [];
  }
}

/**
 * For each node outside loops, by its id, the paths of the loops that have ended once it starts:
 * those that it reads, directly or through other nodes.
 */
export function loopsBefore(scope: Scope): Map<number, readonly string[]> {
  const before = new Map<number, readonly string[]>();
  /** What has ended once a node's value is there. */
  const at = new Map<number, Set<string>>();
  const visit = ({ nodes }: Scope, { path, flag }: { path: string; flag: Iterable<string> }) => {
    for (const node of nodes) {
      const read = readBy(node).flatMap((id) => [...at.get(id) ?? []]);
      const ended = new Set([...flag, ...read]);
      const here = joinKey(path, node.name);
      before.set(node.id, [...ended]);
      at.set(node.id, node.kind === "loop" ? new Set([...ended, here]) : ended);
      if (node.kind !== "when") continue;
      for (const { label, scope } of inner(node)) {
        visit(scope, { path: joinKey(here, label), flag: ended });
        for (const id of [...scope.nodes.map(({ id }) => id), ...nodesIn(scope.output)]) {
          at.get(id)?.forEach((loop) => ended.add(loop));
        }
      }
    }
  };
  visit(scope, { path: "", flag: [] });
  return before;
}

/** The nodes that a node reads, in the scopes inside it too. */
function readBy(node: GraphNode): number[] {
  const inside = inner(node).flatMap(({ scope }) => [
    ...scope.nodes.flatMap(readBy),
    ...nodesIn(scope.output),
  ]);
  return [...nodesIn(wiringOf(node)), ...(node.kind === "loop" ? inside : [])];
}

function nodesIn(wiring: unknown): number[] {
  return refsIn(wiring).flatMap(({ source }) => "node" in source ? [source.node] : []);
}
