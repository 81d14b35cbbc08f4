import {
  diffRuns,
  findRun,
  type FirstDifference,
  type Home,
  type RunDiff,
} from "../../runs/mod.ts";
import { print, printJson } from "../display/output.ts";
import { defineVerb } from "../verb.ts";
import { json } from "../options.ts";

/** `diff A B`: where two runs diverge. */
export const diffVerb = defineVerb({
  name: "diff",
  about: "show where two runs diverge",
  arguments: { "<a>": "a run's id", "<b>": "the run to compare it with" },
  options: { json },
  action: ({ args, flags, globals }) => globals.withHome((home) => printDiff(home, args, flags)),
});

async function printDiff(
  home: Home,
  ids: { a: string; b: string },
  flags: { json?: boolean },
): Promise<void> {
  const heads = { a: await findRun(home, ids.a), b: await findRun(home, ids.b) };
  const diff = await diffRuns({ store: home.store, artifacts: home.artifacts }, heads);
  if (flags.json) printJson(diff);
  else print(describe(diff));
}

function describe(diff: RunDiff): string {
  const { config, graph, packages, loops, ledger, digest, replans, settings, recoveries } = diff;
  const lines: [string, string[]][] = [
    ["config", config.map(pair)],
    ["graph", [
      ...graph.only_a.map((line) => `- ${line}`),
      ...graph.only_b.map((line) => `+ ${line}`),
    ]],
    ["packages", packages.map(pair)],
    ["rounds", loops.filter(({ a, b }) => a !== b).map(({ loop, a, b }) => `${loop} ${a} -> ${b}`)],
    ["versions", firsts(loops, "versions")],
    ["batches", firsts(loops, "batches")],
    ["losses", firsts(loops, "losses")],
    ["ledger", ledger.map(pair)],
    ["weights", digest.a === digest.b ? [] : [`digest ${short(digest.a)} -> ${short(digest.b)}`]],
    ["replans", [
      ...replans.a.map((one) => `- ${replanText(one)}`),
      ...replans.b.map((one) => `+ ${replanText(one)}`),
    ]],
    ["settings", [
      ...settings.a.map((one) => `- ${settingText(one)}`),
      ...settings.b.map((one) => `+ ${settingText(one)}`),
    ]],
    ["recovery", [...counts(recoveries.a, "-"), ...counts(recoveries.b, "+")]],
  ];
  const shown = lines.flatMap(([name, texts]) =>
    (texts.length > 0 ? texts : ["the same"]).map((text) => `${name.padEnd(10)} ${text}`)
  );
  return [`- ${diff.a}`, `+ ${diff.b}`, ...shown].join("\n");
}

const short = (digest: string | null) => digest?.slice(0, 12) ?? "-";

function pair({ path, a, b }: { path: string; a?: unknown; b?: unknown }): string {
  return `${path} ${JSON.stringify(a) ?? "-"} -> ${JSON.stringify(b) ?? "-"}`;
}

function firsts(loops: RunDiff["loops"], what: "versions" | "batches" | "losses"): string[] {
  const found = loops.flatMap((loop) => loop[what] ?? []);
  return found.map(({ round, what }: FirstDifference) => `from ${round} on: ${what.join("; ")}`);
}

function replanText({ round, cause, field, from, to }: RunDiff["replans"]["a"][number]): string {
  return `${
    round === null ? "at a resume" : `in round ${round}`
  }, ${cause}: ${field} ${from} -> ${to}`;
}

function settingText({ path, from, to }: RunDiff["settings"]["a"][number]): string {
  return pair({ path, a: from, b: to });
}

function counts(recoveries: Record<string, number>, sign: string): string[] {
  return Object.entries(recoveries).map(([cause, n]) => `${sign} ${cause} ${n}`);
}
