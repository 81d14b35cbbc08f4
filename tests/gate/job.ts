import { spawnToFile } from "../spawn_to_file.ts";
import { shareOf } from "./load.ts";
import { type Case, caseSeconds, casesOf, countOf, denoSeconds, TOGETHER } from "./report.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** Test files that one process runs. */
export type Job = {
  name: string;
  files: readonly string[];
  argv: readonly string[];
  dir: string;
};

/** How a job ended. `problem`: what failed although no test says so; null if nothing did. */
export type Ended = {
  job: Job;
  cases: Case[];
  /** Of each file that ran a test. */
  seconds_of: Map<string, number>;
  problem: string | null;
  /** All that it printed, without colours. */
  output: string;
  seconds: number;
};

/** A job that is running. `at`: the last line that it printed, which names the test that runs. */
type RunningJob = { job: Job; began: number; at: string };

/** What a gate runs now. Once it is interrupted it starts nothing more. */
export class Running extends Set<RunningJob> {
  interrupted = false;
}

/** What Deno prints of a test that still runs, after its name: no progress. */
const STILL_RUNNING = /(?:(?<= \.\.\.)|^)'.*' has been running for over .*$/gm;
// deno-lint-ignore no-control-regex -- Escape sequences begin with one.
const COLOURS = /\x1b\[[\d;]*m/g;

const LOOK_MS = 500;

/** A job of `deno test`. Types are checked once, for all files, before any test. */
export function denoJob(
  name: string,
  files: readonly string[],
  dir: string,
): Job {
  const argv = [Deno.execPath(), "test", "-A", "--no-check", "--quiet"];
  return {
    name,
    files,
    dir,
    argv: [...argv, `--junit-path=${dir}/report.xml`, ...files],
  };
}

/** Such a job whose files share an isolate: several times as fast. */
export function togetherJob(name: string, files: readonly string[], dir: string): Job {
  const { argv, ...job } = denoJob(name, [TOGETHER], dir);
  return { ...job, files, argv: [...argv, "--", ...files] };
}

/** A job of pytest. `stacks_s`: after so long in one test it prints every thread's stack. */
export function pytestJob(
  name: string,
  files: readonly string[],
  { dir, python, stacks_s }: { dir: string; python: string; stacks_s: number },
): Job {
  const options = [
    "-v",
    "-p",
    "no:cacheprovider",
    "-o",
    `faulthandler_timeout=${stacks_s}`,
  ];
  const argv = [
    python,
    "-m",
    "pytest",
    ...options,
    `--junitxml=${dir}/report.xml`,
  ];
  return { name, files, dir, argv: [...argv, ...files] };
}

/**
 * Runs a job to its end. One in which no test ends for `silence_ms` of its share of the cores is
 * killed, and its problem says what it was doing.
 */
export async function runJob(
  job: Job,
  { silence_ms, running }: { silence_ms: number; running: Running },
): Promise<Ended> {
  Deno.mkdirSync(job.dir, { recursive: true }); // No pause in which an interruption goes unseen.
  const path = `${job.dir}/output.log`;
  const now: RunningJob = { job, began: performance.now(), at: "" };
  running.add(now);
  const env = { PYTHONPATH: `${ROOT}workers/python` };
  const child = spawnToFile([...job.argv], { path, cwd: ROOT, env });
  const read = async () => (await Deno.readTextFile(path).catch(() => "")).replaceAll(COLOURS, "");
  let [length, looked_at, silent_ms] = [0, performance.now(), 0];
  let hung: string | null = null;
  const look = setInterval(async () => {
    const text = (await read()).replaceAll(STILL_RUNNING, "").trimEnd();
    const since = performance.now() - looked_at;
    looked_at += since;
    // On busy cores a test that hangs and one that is slow look alike for longer.
    silent_ms += since * shareOf(Deno.loadavg()[0]!, navigator.hardwareConcurrency);
    if (text.length !== length) [length, silent_ms] = [text.length, 0];
    now.at = text.slice(text.lastIndexOf("\n") + 1);
    if (hung !== null || silent_ms < silence_ms) return;
    hung = `no test ended for ${silence_ms / 1000} s at: ${now.at}\n${await processesBelow(
      child.pid,
    )}`;
    child.kill("SIGKILL");
  }, LOOK_MS);
  const status = await child.status;
  clearInterval(look);
  running.delete(now);
  const cases = casesOf(
    await Deno.readTextFile(`${job.dir}/report.xml`).catch(() => ""),
    job.files,
  );
  const output = (await read()).trimEnd();
  const seconds_of = job.argv.includes("pytest") ? caseSeconds(cases) : denoSeconds(output);
  return {
    job,
    cases,
    seconds_of,
    problem: hung ?? problemOf(job, { cases, seconds_of, status }),
    output,
    seconds: (performance.now() - now.began) / 1000,
  };
}

/** What a job's end says beyond its tests: a file without a test, a process that ended badly. */
export function problemOf(
  { files }: Pick<Job, "files">,
  { cases, seconds_of, status }: Pick<Ended, "cases" | "seconds_of"> & {
    status: Deno.CommandStatus;
  },
): string | null {
  const how = status.signal ?? `exit code ${status.code}`;
  if (cases.length === 0) return `it reported no test (${how})`;
  const silent = files.filter((file) => !seconds_of.has(file));
  if (silent.length > 0) return `no test ran in ${silent.join(", ")} (${how})`;
  return !status.success && countOf(cases).failed === 0 ? `every test passed, but ${how}` : null;
}

/** Processes below one, what each runs and how long: where a job hangs. */
async function processesBelow(pid: number): Promise<string> {
  const args = ["-e", "-o", "pid=,ppid=,stat=,etime=,args="];
  const { stdout } = await new Deno.Command("ps", { args }).output();
  const all = new TextDecoder().decode(stdout).split("\n").map((line) => line.trim());
  const below = (parent: string): string[] =>
    all.filter((line) => line.split(/\s+/)[1] === parent)
      .flatMap((line) => [line, ...below(line.split(/\s+/)[0]!)]);
  return ["Its processes (pid, parent, state, age):", ...below(String(pid))]
    .join("\n");
}
