/** JUnit reports of `deno test` and pytest. */

/** One test that ended. `seconds` include what it prepares and clears away. */
export type Case = {
  file: string;
  name: string;
  seconds: number;
  outcome: "passed" | "failed" | "skipped";
};

/** How many tests passed, failed and were skipped. */
type Count = { passed: number; failed: number; skipped: number };

const CASE = /<testcase\s([^>]*?)(?:\/>|>([^]*?)<\/testcase>)/g;

/** The tests of a report. `files`: those that were asked for, which the cases are given to. */
export function casesOf(xml: string, files: readonly string[]): Case[] {
  return [...xml.matchAll(CASE)].map(([, attributes = "", body = ""]) => ({
    file: fileOf(attribute(attributes, "classname"), files),
    name: attribute(attributes, "name"),
    seconds: Number(attribute(attributes, "time")),
    outcome: /<(failure|error)\b/.test(body)
      ? "failed"
      : /<skipped\b/.test(body)
      ? "skipped"
      : "passed",
  }));
}

export function countOf(cases: readonly Case[]): Count {
  const count: Count = { passed: 0, failed: 0, skipped: 0 };
  for (const { outcome } of cases) count[outcome] += 1;
  return count;
}

/** Seconds of each file, the slowest first. */
export function secondsOf(
  cases: readonly Case[],
): [file: string, seconds: number][] {
  const sums = new Map<string, number>();
  for (const { file, seconds } of cases) {
    sums.set(file, (sums.get(file) ?? 0) + seconds);
  }
  return [...sums].sort(([, a], [, b]) => b - a);
}

/** A file as the reports name it: `./tests/a_test.ts`, `tests.python.test_a` or a class in it. */
function fileOf(classname: string, files: readonly string[]): string {
  const path = classname.replace(/^\.\//, "").replace(/:\d+:\d+$/, "");
  const dotted = (file: string) => file.replace(/\.py$/, "").replaceAll("/", ".");
  return files.find((file) => path === file || `${path}.`.startsWith(`${dotted(file)}.`)) ?? path;
}

const ENTITIES: Record<string, string> = {
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  amp: "&",
};

function attribute(attributes: string, name: string): string {
  const raw = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes)?.[1] ??
    "";
  return raw.replaceAll(
    /&(\w+);/g,
    (whole, entity) => ENTITIES[entity] ?? whole,
  );
}
