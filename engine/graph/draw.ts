/**
 * A graph as lines (for hash and differences), as text for a terminal, as mermaid for a page; and
 * its stages counted.
 */
import { type GraphNode, Ref, type RefSource, type Scope, type StageCount } from "./types.ts";

type Names = Map<number, string>;

/**
 * One line per node: path, kind, stage and version, edges. Literals are left out: the configuration
 * records them.
 */
export function graphLines(name: string, root: Scope): string[] {
  const names = nameNodes(root);
  return [
    `graph ${name}`,
    ...scopeLines(root, names),
    `output <- ${edgesOf(root.output, names).join(", ")}`,
  ];
}

function scopeLines(scope: Scope, names: Names): string[] {
  return scope.nodes.flatMap((node) => {
    const path = names.get(node.id) ?? node.name;
    const line = `${path} ${kindOf(node)} <- ${edgesOf(wiringOf(node), names).join(", ")}`
      .trimEnd();
    return [
      line,
      ...inner(node).flatMap(({ scope }) => [
        ...scopeLines(scope, names),
        `${path} output <- ${edgesOf(scope.output, names).join(", ")}`,
      ]),
    ];
  });
}

function kindOf(node: GraphNode): string {
  switch (node.kind) {
    case "stage":
      return `stage ${node.stage.name}@${node.stage.version}`;
    case "map":
      return `map ${node.stage.name}@${node.stage.version}`;
    case "loop":
      return `loop lag ${node.lag}${node.until ? ` until ${node.until}` : ""}`;
    default:
      return node.kind;
  }
}

/** What a node reads: references and literals. */
export function wiringOf(node: GraphNode): unknown {
  switch (node.kind) {
    case "stage":
      return node.wiring;
    case "map":
      return { item: node.list, ...node.wiring };
    case "flat":
      return node.list;
    case "when":
      return node.flag;
    case "loop":
      return node.carry;
  }
}

/** The scopes inside a node, with the segment their keys get. */
export function inner(node: GraphNode): { label: string; scope: Scope }[] {
  if (node.kind === "loop") return [{ label: "*", scope: node.body }];
  if (node.kind === "when") {
    return [{ label: "then", scope: node.then }, { label: "otherwise", scope: node.otherwise }];
  }
  return [];
}

function nameNodes(scope: Scope, path = "", names: Names = new Map()): Names {
  for (const node of scope.nodes) {
    const qualifiedName = path + node.name;
    names.set(node.id, qualifiedName);
    for (const { label, scope } of inner(node)) {
      nameNodes(scope, `${qualifiedName}/${label}/`, names);
    }
  }
  return names;
}

/** `policy: prepare_policy`, `policy: round(policy, lag 1)`. */
function edgesOf(wiring: unknown, names: Names, field = ""): string[] {
  if (wiring instanceof Ref) {
    const source = [sourceName(wiring.source, names), ...wiring.path].join(".");
    return [field === "" ? source : `${field}: ${source}`];
  }
  if (typeof wiring !== "object" || wiring === null) return [];
  return Object.entries(wiring).flatMap(([key, value]) =>
    edgesOf(value, names, field === "" ? key : `${field}.${key}`)
  );
}

function sourceName(source: RefSource, names: Names): string {
  switch (source.from) {
    case "node":
      return names.get(source.node) ?? "?";
    case "loop":
      return `${names.get(source.node)}.${source.carried}`;
    case "carried":
      return `${names.get(source.loop)}(${source.name}${
        source.lag > 0 ? `, lag ${source.lag}` : ""
      })`;
    case "index":
      return `${names.get(source.loop)}(index)`;
    case "constant":
      return "constant";
  }
}

/** An indented tree with edges. */
export function drawText(head: { name: string; hash: string }, root: Scope): string {
  const names = nameNodes(root);
  return [`${head.name}  ${head.hash.slice(0, 12)}`, ...textLines(root, { names, indent: "" })]
    .join("\n");
}

function textLines(scope: Scope, { names, indent }: { names: Names; indent: string }): string[] {
  return scope.nodes.flatMap((node, place) => {
    const last = place === scope.nodes.length - 1;
    const below = indent + (last ? "   " : "│  ");
    const edges = edgesOf(wiringOf(node), names).join(", ");
    const line = `${indent}${last ? "└─" : "├─"} ${title(node)}${
      edges === "" ? "" : `  <- ${edges}`
    }`;
    const branches = inner(node).flatMap(({ label, scope }) =>
      node.kind === "loop"
        ? textLines(scope, { names, indent: below })
        : [`${below}${label}:`, ...textLines(scope, { names, indent: below })]
    );
    return [line, ...branches];
  });
}

function title(node: GraphNode): string {
  switch (node.kind) {
    case "stage":
      return `${node.name}${onGroup(node.stage.runs_on)}`;
    case "map":
      return `${node.name} for each${onGroup(node.stage.runs_on)}`;
    case "loop":
      return `${node.name} × ${node.times}${node.lag > 0 ? `, lag ${node.lag}` : ""}${
        node.until ? `, until ${node.until}` : ""
      }`;
    default:
      return node.name;
  }
}

function onGroup(runsOn: string): string {
  return runsOn === "engine" ? "" : ` [${runsOn}]`;
}

/** Mermaid's flowchart; loops and branches are boxes, carried values dotted edges. */
export function drawMermaid(root: Scope): string {
  return ["flowchart TD", ...mermaidScope(root, "  "), ...mermaidEdges(root)].join("\n");
}

function mermaidScope(scope: Scope, indent: string): string[] {
  return scope.nodes.flatMap((node) => {
    const boxes = inner(node);
    if (boxes.length === 0) return [`${indent}n${node.id}["${title(node)}"]`];
    return [
      `${indent}subgraph n${node.id}["${title(node)}"]`,
      ...boxes.flatMap(({ scope }) => mermaidScope(scope, indent + "  ")),
      `${indent}end`,
    ];
  });
}

function mermaidEdges(scope: Scope, loops: ReadonlyMap<number, Scope> = new Map()): string[] {
  const inside = new Map(loops);
  for (const node of scope.nodes) if (node.kind === "loop") inside.set(node.id, node.body);
  return scope.nodes.flatMap((node) => {
    const arrows = refsOf(wiringOf(node)).flatMap((source) =>
      mermaidSources(source, inside).map((arrow) => `  ${arrow} n${node.id}`)
    );
    return [...new Set(arrows), ...inner(node).flatMap(({ scope }) => mermaidEdges(scope, inside))];
  });
}

/**
 * A carried value comes from the body's node that returns it: mermaid refuses an edge from a box to
 * its own content.
 */
function mermaidSources(source: RefSource, loops: ReadonlyMap<number, Scope>): string[] {
  switch (source.from) {
    case "node":
    case "loop":
      return [`n${source.node} -->`];
    case "carried": {
      const label = `${source.name}${source.lag > 0 ? ` lag ${source.lag}` : ""}`;
      const output = loops.get(source.loop)?.output as Record<string, unknown> | undefined;
      const nodeRefs = refsOf(output?.[source.name]).filter((ref) => ref.from === "node");
      return nodeRefs.map((ref) => `n${ref.node} -. ${label} .->`);
    }
    default:
      return [];
  }
}

function refsOf(wiring: unknown): RefSource[] {
  if (wiring instanceof Ref) return [wiring.source];
  if (typeof wiring !== "object" || wiring === null) return [];
  return Object.values(wiring).flatMap(refsOf);
}

/** The most rounds of each loop, by its path; `*` stands for the round of a loop around it. */
export function loopTimes(root: Scope): Record<string, number> {
  const names = nameNodes(root);
  const timesIn = (scope: Scope): [path: string, times: number][] =>
    scope.nodes.flatMap((node) => {
      const below = inner(node).flatMap(({ scope }) => timesIn(scope));
      return node.kind === "loop" ? [[names.get(node.id)!, node.times], ...below] : below;
    });
  return Object.fromEntries(timesIn(root));
}

/** How often each stage runs. `per_item`: once per item of a list that is not known yet. */
export function countStages(scope: Scope, times = 1): StageCount[] {
  const counts = new Map<string, StageCount>();
  const add = (count: StageCount) => {
    const name = `${count.stage} ${count.per_item}`;
    counts.set(name, { ...count, times: count.times + (counts.get(name)?.times ?? 0) });
  };
  for (const node of scope.nodes) {
    if (node.kind === "stage" || node.kind === "map") {
      add({
        stage: node.stage.name,
        runs_on: node.stage.runs_on,
        times,
        per_item: node.kind === "map",
      });
    }
    for (const { scope } of inner(node)) {
      countStages(scope, times * (node.kind === "loop" ? node.times : 1)).forEach(add);
    }
  }
  return [...counts.values()];
}
