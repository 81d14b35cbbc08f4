import { ensureTestEnvironments } from "../environments.ts";
import { git } from "./git.ts";
import { missingLine, missingTools } from "../tools.ts";
import { denoJob, type Ended, type Job, pytestJob, type Running, togetherJob } from "./job.ts";
import { countOf } from "./report.ts";
import { childrenPart, countedSeconds, cpuSeconds } from "./load.ts";
import { strangers, strangersLine } from "./left_in_tree.ts";
import { failuresOf, keepIfFailed, runJobs } from "./run_jobs.ts";
import { PROMISES, suiteOf, testFiles } from "./suites.ts";
import { slowness } from "./yardstick.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** What a gate may take on two cores, from nothing and with its environments made. */
const LIMIT_MIN = { bare: 15, made: 8 };
/**
 * What a file of fast tests may take, alone, on a machine that is as fast as the yardstick says. It
 * should take well below 8 s, because no yardstick is exact and no gate fails by chance.
 */
const FILE_LIMIT_S = 10;
const SLOWEST = 10;
/** What ends no test for so long hangs. pytest prints its stacks before that. */
const SILENCE_MS = 4 * 60_000;
const STACKS_S = 180;
/** Processes for the fast tests of each language: a lane that is free takes the next one. */
const PARTS = { deno: 6, pytest: 6 };

/** Two lanes on two cores: more threads of PyTorch wait for each other, six times as long. */
const ONE_THREAD = { OMP_NUM_THREADS: "1" };

type Gate = {
  dir: string;
  env: Record<string, string>;
  running: Running;
};
type FileTime = [file: string, seconds: number];
type Total = { passed: number; failed: number };

/** Runs the gate, or its test files whose path contains one of `parts`. Returns the exit code. */
export async function runGate(
  parts: readonly string[],
  running: Running,
): Promise<number> {
  const began = performance.now();
  const files = await filesOf(parts);
  if (files.length === 0) return await nothingMatches(parts);
  const total: Total = { passed: 0, failed: 0 };
  const checking = parts.length === 0 ? checks(total, running) : Promise.resolve();
  const env = await ensureTestEnvironments();
  const environments_s = seconds(began);
  const dir = await Deno.makeTempDir({ prefix: "holdfast-gate-" });
  for (const [name, value] of Object.entries({ ...env, ...ONE_THREAD })) Deno.env.set(name, value);
  const gate = { dir, env, running };
  const before = await strangers();
  const load = cpuSeconds();
  const ended = await runJobs(jobsOf(files, gate), {
    lanes: 2,
    silence_ms: SILENCE_MS,
    running,
    say: console.log,
  });
  await checking;
  const times = ended.flatMap(({ seconds_of }) => [...seconds_of]).sort(([, a], [, b]) => b - a);
  const slow = await tooSlow(times, { gate, part: childrenPart(load, cpuSeconds()) });
  addUp(total, ended);
  const strangersText = strangersLine(before, await strangers());
  if (strangersText !== null) console.log(strangersText);
  total.failed += slow.length + (strangersText === null ? 0 : 1);
  const took_s = seconds(began);
  tellTimes(times, { slow, took_s, environments_s });
  if (parts.length === 0) {
    await record({ ...total, seconds: Math.round(took_s) });
  }
  await keepIfFailed(dir, total.failed > 0);
  console.log(`${total.passed} passed, ${total.failed} failed`);
  return total.failed === 0 && total.passed > 0 ? 0 : 1;
}

async function filesOf(parts: readonly string[]): Promise<string[]> {
  const files = (await testFiles()).filter((file) => suiteOf(file) === null);
  return parts.length === 0
    ? files
    : files.filter((file) => parts.some((part) => file.includes(part)));
}

async function nothingMatches(parts: readonly string[]): Promise<number> {
  const long = (await testFiles()).filter((file) => parts.some((part) => file.includes(part)));
  console.log(
    `Cannot test ${parts.join(" ")} because no test file of the gate has that in its path. Fix: ` +
      (long.length > 0
        ? `${long[0]} is in the long suite '${suiteOf(long[0]!)}': deno task test --whole ${
          parts.join(" ")
        }`
        : "name a part of a path below tests/"),
  );
  return 2;
}

/** Format, lint and types; each counts as one test. */
async function checks(total: Total, running: Running): Promise<void> {
  const line = missingLine(missingTools());
  if (line !== null) console.log(line);
  for (
    const [name, ...args] of [
      ["format", "fmt", "--check", "--quiet"],
      ["lint", "lint", "--quiet"],
      ["types", "check", "--quiet", "."],
    ] as const
  ) {
    if (running.interrupted) return;
    const began = performance.now();
    const { success } = await new Deno.Command(Deno.execPath(), {
      args,
      cwd: ROOT,
      stdin: "null",
    }).spawn().status;
    total[success ? "passed" : "failed"] += 1;
    console.log(
      `${success ? "ok    " : "FAILED"} ${name} (${seconds(began).toFixed(1)} s)`,
    );
  }
}

/**
 * Whole runs first and fast tests last: one lane begins at each end, so that the first wait for
 * their workers while the others compute.
 */
function jobsOf(files: readonly string[], { dir, env }: Gate): Job[] {
  const promises = files.filter((file) => file.startsWith(PROMISES));
  const python = files.filter((file) => file.endsWith(".py"));
  const deno = files.filter((file) => file.endsWith(".ts") && !file.startsWith(PROMISES));
  return [
    ...promises.map((file, i) => denoJob(file, [file], `${dir}/promise_${i}`)),
    ...inParts(python, PARTS.pytest).map((part, i) =>
      pytestJob(`pytest ${i + 1}`, part, {
        dir: `${dir}/pytest_${i}`,
        python: env.HOLDFAST_TEST_PYTHON!,
        stacks_s: STACKS_S,
      })
    ),
    ...inParts(deno, PARTS.deno).map((part, i) =>
      togetherJob(`deno ${i + 1}`, part, `${dir}/deno_${i}`)
    ),
  ];
}

/** At most `count` parts of about equal length, none empty; neighbours stay together. */
function inParts(files: readonly string[], count: number): string[][] {
  const cut = (part: number) => Math.round(files.length * part / count);
  return Array.from(
    { length: count },
    (_, part) => files.slice(cut(part), cut(part + 1)),
  )
    .filter((part) => part.length > 0);
}

/**
 * Files of fast tests that took too long, and do alone too: neither load nor a slow day decides.
 * `part`: of the machine, what the gate had meanwhile.
 */
async function tooSlow(
  times: readonly FileTime[],
  { gate, part }: { gate: Gate; part: number },
): Promise<FileTime[]> {
  const over = (limit_s: number) =>
    times.filter(([file, taken]) => taken * part > limit_s && !file.startsWith(PROMISES));
  const suspected = over(FILE_LIMIT_S).length === 0 ? [] : over(FILE_LIMIT_S * await slowness());
  const alone: FileTime[] = [];
  for (const [i, [file]] of suspected.entries()) {
    const [job] = jobsOf([file], { ...gate, dir: `${gate.dir}/alone_${i}` });
    const before = cpuSeconds();
    const [ended] = await runJobs([{ ...job!, name: `${file} alone` }], {
      lanes: 1,
      silence_ms: SILENCE_MS,
      running: gate.running,
      say: console.log,
    });
    const wall_s = ended!.seconds_of.get(file) ?? Infinity;
    const cores = navigator.hardwareConcurrency;
    const taken = countedSeconds(wall_s, { before, after: cpuSeconds(), cores });
    if (taken <= FILE_LIMIT_S) continue;
    const slow = await slowness();
    if (taken > FILE_LIMIT_S * slow) alone.push([file, taken / slow]);
  }
  return alone;
}

function addUp(total: Total, ended: readonly Ended[]): void {
  for (const one of ended) {
    total.passed += countOf(one.cases).passed;
    total.failed += failuresOf(one);
  }
}

function tellTimes(
  times: readonly FileTime[],
  { slow, took_s, environments_s }: {
    slow: [string, number][];
    took_s: number;
    environments_s: number;
  },
): void {
  console.log(`The ${SLOWEST} slowest files:`);
  for (const [file, taken] of times.slice(0, SLOWEST)) {
    console.log(`  ${taken.toFixed(1).padStart(6)} s  ${file}`);
  }
  for (const [file, taken] of slow) {
    console.log(
      `FAILED ${file} took ${
        taken.toFixed(1)
      } s alone on a machine of the usual speed, and a file of the gate may take ` +
        `${FILE_LIMIT_S} s. Fix: make it faster, or name it in a long suite of tests/gate/suites.ts`,
    );
  }
  console.log(
    `The gate took ${minutes(took_s)}, of which ${
      minutes(environments_s)
    } went to its environments ` +
      `(limits on two cores: ${LIMIT_MIN.bare} min from nothing, ${LIMIT_MIN.made} min with environments)`,
  );
}

/** Leaves what this gate found, and of which files. */
async function record(found: Total & { seconds: number }): Promise<void> {
  const stamp = {
    commit: await git("rev-parse", "HEAD"),
    tree: await git("rev-parse", "HEAD^{tree}"),
    changed_files: (await git("status", "--porcelain")).split("\n").filter(Boolean).length,
    ...found,
  };
  await Deno.mkdir(`${ROOT}.holdfast`, { recursive: true });
  await Deno.writeTextFile(
    `${ROOT}.holdfast/gate.json`,
    JSON.stringify(stamp) + "\n",
  );
}

const seconds = (began: number) => (performance.now() - began) / 1000;
const minutes = (taken: number) => `${Math.floor(taken / 60)} min ${Math.round(taken % 60)} s`;
