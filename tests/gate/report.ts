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

const SUITE = /<testsuite\s([^>]*?)>([^]*?)<\/testsuite>/g;
const CASE = /<testcase\s([^>]*?)(?:\/>|>([^]*?)<\/testcase>)/g;
/** Between the name of a test and that of its step. */
const STEP = " > ";

/** The tests of a report. `files`: those that were asked for, which the cases are given to. */
export function casesOf(xml: string, files: readonly string[]): Case[] {
  return [...xml.matchAll(SUITE)].flatMap(([, suite = "", cases = ""]) => {
    // Deno names the file as the suite, and as a case's class the one in which it is written.
    const own = fileOf(attribute(suite, "name"), files);
    return [...cases.matchAll(CASE)].map(([, attributes = "", body = ""]): Case => {
      const name = attribute(attributes, "name");
      const isStep = own !== null && name.includes(STEP); // Its test's seconds include its own.
      return {
        file: own ?? fileOf(attribute(attributes, "classname"), files) ?? "",
        name,
        seconds: isStep ? 0 : Number(attribute(attributes, "time")),
        outcome: outcomeOf(body),
      };
    });
  });
}

function outcomeOf(body: string): Case["outcome"] {
  if (/<(failure|error)\b/.test(body)) return "failed";
  return /<skipped\b/.test(body) ? "skipped" : "passed";
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

/** A file as reports name it: `./tests/a_test.ts`, `tests.python.test_a` or a class in that. */
function fileOf(name: string, files: readonly string[]): string | null {
  const path = name.replace(/^\.\//, "");
  const dotted = (file: string) => file.replace(/\.py$/, "").replaceAll("/", ".");
  return files.find((file) => path === file || `${path}.`.startsWith(`${dotted(file)}.`)) ?? null;
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
