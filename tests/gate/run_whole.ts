import { ensureTestEnvironments } from "../environments.ts";
import { denoJob, type Ended, type Job, pytestJob, type Running } from "./job.ts";
import { LONG_TOOLS, missingLine, missingTools, TOOLS } from "../tools.ts";
import { git } from "./git.ts";
import { type LongRun, longRuns, withLongRun } from "./long_tests.ts";
import { countOf } from "./report.ts";
import { failuresOf, keepIfFailed, runJobs } from "./run_jobs.ts";
import { suiteOf, SUITES, testFiles } from "./suites.ts";

const RECORD = new URL("../../docs/long_tests.md", import.meta.url);
const SILENCE_MS = 20 * 60_000;
const STACKS_S = 600;

/**
 * Runs long suites one after another: those that are named, else all. A suite that ended well on
 * this commit already is not run again. A part of a path runs the long files that have it, without
 * a record. Returns the exit code.
 */
export async function runWhole(
  names: readonly string[],
  running: Running,
): Promise<number> {
  const files = (await testFiles()).filter((file) => suiteOf(file) !== null);
  const suites = Object.keys(SUITES);
  const parts = names.filter((name) => !suites.includes(name));
  const unknown = parts.filter((part) => !files.some((file) => file.includes(part)));
  if (unknown.length > 0) {
    console.log(
      `Cannot run ${
        unknown.join(", ")
      } because no long suite and no path of a long test has that ` +
        `name. Fix: use one of ${suites.join(", ")}`,
    );
    return 2;
  }
  const line = missingLine(missingTools([...TOOLS, ...LONG_TOOLS]));
  if (line !== null) console.log(line);
  const env = await ensureTestEnvironments();
  for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
  const run = async (
    name: string,
    chosen: readonly string[],
  ): Promise<LongRun> =>
    await runSuite(chosen, {
      name,
      python: env.HOLDFAST_TEST_PYTHON!,
      running,
    });
  const total = { passed: 0, failed: 0 };
  const add = ({ passed, failed }: LongRun) => {
    total.passed += passed;
    total.failed += failed;
  };
  for (const part of parts) {
    add(await run(part, files.filter((file) => file.includes(part))));
  }
  for (
    const name of names.length === 0 ? suites : suites.filter((one) => names.includes(one))
  ) {
    const commit = await commitNow();
    const known = longRuns(await Deno.readTextFile(RECORD)).get(name);
    if (
      known?.commit === commit && known.failed === 0 && !commit.endsWith("+")
    ) {
      console.log(`ok     ${name} has passed on ${commit} already`);
      add(known);
      continue;
    }
    const ended = await run(
      name,
      files.filter((file) => suiteOf(file) === name),
    );
    if (running.interrupted) return 1;
    add(ended);
    await Deno.writeTextFile(
      RECORD,
      withLongRun(await Deno.readTextFile(RECORD), ended),
    );
  }
  console.log(`${total.passed} passed, ${total.failed} failed`);
  return total.failed === 0 && total.passed > 0 ? 0 : 1;
}

/** The commit that is tested; with a `+` if files differ from it, the record aside. */
async function commitNow(): Promise<string> {
  const commit = await git("rev-parse", "--short=9", "HEAD");
  const changed = await git(
    "status",
    "--porcelain",
    "--",
    ".",
    ":!docs/long_tests.md",
  );
  return changed === "" ? commit : `${commit}+`;
}

async function runSuite(
  files: readonly string[],
  { name, python, running }: {
    name: string;
    python: string;
    running: Running;
  },
): Promise<LongRun> {
  const began = performance.now();
  const commit = await commitNow();
  const dir = await Deno.makeTempDir({ prefix: `holdfast-long-` });
  const [py, ts] = [".py", ".ts"].map((end) => files.filter((file) => file.endsWith(end)));
  const jobs: Job[] = [
    ...(ts!.length > 0 ? [denoJob(name, ts!, `${dir}/deno`)] : []),
    ...(py!.length > 0
      ? [
        pytestJob(`${name} (pytest)`, py!, {
          dir: `${dir}/pytest`,
          python,
          stacks_s: STACKS_S,
        }),
      ]
      : []),
  ];
  const options = {
    lanes: 1,
    silence_ms: SILENCE_MS,
    running,
    say: console.log,
  } as const;
  const ended = await runJobs(jobs, options);
  await keepIfFailed(dir, ended.some((one) => failuresOf(one) > 0));
  const sum = (of: (one: Ended) => number) => ended.reduce((total, one) => total + of(one), 0);
  return {
    name,
    about: SUITES[name]?.about ?? "",
    commit,
    date: new Date().toISOString().slice(0, 10),
    passed: sum(({ cases }) => countOf(cases).passed),
    failed: sum(failuresOf),
    minutes: Math.round((performance.now() - began) / 6000) / 10,
  };
}
