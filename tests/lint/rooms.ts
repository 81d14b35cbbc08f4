/**
 * The import table of the house as a lint rule: which room may import which, and through its
 * `mod.ts` alone. What is not listed is refused. Node, npm and same-room imports are free. `tests`
 * may import all, and past a room's `mod.ts` too: they try its parts. `mod.ts` and `entry` are the
 * entry points; `examples` may import only these, by their names as users do.
 */
const BELOW_CONFIGS = ["engine", "data", "workers", "algs", "rewards", "rollouts"];
const BELOW_FLOWS = [...BELOW_CONFIGS, "configs"];
const BELOW_RUNS = [...BELOW_FLOWS, "flows"];
const BELOW_CLI = [...BELOW_RUNS, "runs"];
const ALL = [...BELOW_CLI, "testing"];
const ENTRY_POINT = /^holdfast(\/|$)/;

export const IMPORT_TABLE: Record<string, string[]> = {
  engine: [],
  data: [],
  workers: ["data", "engine"],
  algs: ["data"],
  rewards: ["data"],
  rollouts: ["data", "engine", "rewards", "workers"],
  configs: BELOW_CONFIGS,
  flows: BELOW_FLOWS,
  runs: BELOW_RUNS,
  testing: BELOW_CLI,
  cli: [...BELOW_CLI, "deno.json"],
  bench: ALL,
  docs: BELOW_FLOWS,
  "mod.ts": BELOW_CLI,
  entry: ALL,
  examples: [],
};

/** Room of a repository path: its first folder, or the file's own name at the top. */
function roomOf(path: string): string {
  return path.split("/")[0]!;
}

/**
 * Resolves a relative import against the importing file; both are repository paths with forward
 * slashes.
 */
function resolve(from: string, specifier: string): string {
  const parts = from.split("/").slice(0, -1);
  for (const part of specifier.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/**
 * A sentence if `from` may not import `specifier`, else null. Paths are relative to the repository.
 */
export function refusal(from: string, specifier: string): string | null {
  const room = roomOf(from);
  if (ENTRY_POINT.test(specifier) && room !== "examples" && IMPORT_TABLE[room] !== undefined) {
    return `Cannot import '${specifier}' from '${room}' because entry points are for scripts: import the room's mod.ts`;
  }
  if (!specifier.startsWith(".")) return null;
  const path = resolve(from, specifier);
  const target = roomOf(path);
  const allowed = IMPORT_TABLE[room];
  if (room === target || allowed === undefined) return null;
  if (!allowed.includes(target)) {
    const list = allowed.length ? allowed.join(", ") : "nothing";
    return `Cannot import '${target}' from '${room}' because the import table allows ${list} there`;
  }
  if (path === target || path === `${target}/mod.ts`) return null;
  return `Cannot import '${path}' from '${room}' because a room is imported through its mod.ts: '${target}/mod.ts'`;
}

const ROOT = new URL("../../", import.meta.url).pathname;

type Sourced = { source: { value: unknown } | null };

const plugin: Deno.lint.Plugin = {
  name: "holdfast",
  rules: {
    rooms: {
      create(context) {
        const from = context.filename.startsWith(ROOT)
          ? context.filename.slice(ROOT.length)
          : context.filename;
        const check = (node: Deno.lint.Node & Sourced) => {
          const sentence = node.source ? refusal(from, String(node.source.value)) : null;
          if (sentence) context.report({ node, message: sentence });
        };
        return {
          ImportDeclaration: (node) => check(node as Deno.lint.Node & Sourced),
          ExportNamedDeclaration: (node) => check(node as Deno.lint.Node & Sourced),
          ExportAllDeclaration: (node) => check(node as Deno.lint.Node & Sourced),
          ImportExpression: (node) => check(node as unknown as Deno.lint.Node & Sourced),
        };
      },
    },
  },
};
// Deno's lint loads a plugin by its default export: the one place that needs one.
export default plugin;
