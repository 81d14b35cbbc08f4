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

/** How the test is named that stands before a file's, where several files share an isolate. */
export const BEGINS = "tests of ";
export const TOGETHER = "tests/gate/together.ts";

const CASE = /<testcase\s([^>]*?)(?:\/>|>([^]*?)<\/testcase>)/g;

/** The tests of a report, steps too. `files`: those that were asked for, to name a case's. */
export function casesOf(xml: string, files: readonly string[]): Case[] {
  return [...xml.matchAll(CASE)].map(([, attributes = "", body = ""]) => ({
    file: fileOf(attribute(attributes, "classname"), files),
    name: attribute(attributes, "name"),
    seconds: Number(attribute(attributes, "time")),
    outcome: outcomeOf(body),
  })).filter(({ name }) => !name.startsWith(BEGINS));
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

/**
 * Seconds of each file's tests by what `deno test` prints: its report names a file only where the
 * tests are written in it, and not in a helper. A file that ran no test is not in it.
 */
export function denoSeconds(output: string): Map<string, number> {
  const seconds = new Map<string, number>();
  let file = "";
  for (const line of output.replaceAll(RUNS_LONG, "").split("\n")) {
    const [, path] = /^running \d+ tests? from \.\/(.+)$/.exec(line) ?? [];
    if (path !== undefined) {
      file = path === TOGETHER ? "" : path;
    }
    // The line of a step is indented, and its time is in its test's.
    const [, name = "", taken] =
      /^(?! )(.*?) ?\.\.\. .*\(([\d.]+(?:µs|ms|s|m|h)[^)]*)\)$/.exec(line) ?? [];
    if (name.startsWith(BEGINS)) file = name.slice(BEGINS.length);
    else if (taken !== undefined && file !== "") {
      seconds.set(file, (seconds.get(file) ?? 0) + durationOf(taken));
    }
  }
  return seconds;
}

/** What Deno prints in the middle of the line of a test that takes long. */
const RUNS_LONG = /(?<= \.\.\.|^)'.*' has been running for over \(.*\)\n/gm;

const UNITS: Record<string, number> = { µs: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 };

/** Seconds of `1m4s` or `250ms`. */
function durationOf(text: string): number {
  return [...text.matchAll(/([\d.]+)(µs|ms|s|m|h)/g)]
    .reduce((sum, [, count, unit]) => sum + Number(count) * UNITS[unit!]!, 0);
}

/** Seconds of each file's tests by the report, as pytest writes it. */
export function caseSeconds(cases: readonly Case[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { file, seconds } of cases) sums.set(file, (sums.get(file) ?? 0) + seconds);
  return sums;
}

/** A file as reports name it: `./tests/a_test.ts`, `tests.python.test_a` or a class in that. */
function fileOf(name: string, files: readonly string[]): string {
  const path = name.replace(/^\.\//, "");
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
