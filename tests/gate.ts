/**
 * The gate: `deno task test`. Format, lint with the import table, types, fresh schemas, then every
 * test of both languages, with the Python environments made first. Ends with one line
 * `N passed, N failed` that counts all of it.
 *
 * Arguments narrow the run: `deno task test engine` runs the tests whose path contains "engine".
 */
import { ensureTestEnvironments } from "./environments.ts";
import { missingLine, missingTools } from "./tools.ts";

const ROOT = new URL("../", import.meta.url).pathname;
const REPORTS = await Deno.makeTempDir({ prefix: "holdfast-gate-" });

type Count = { passed: number; failed: number };
const total: Count = { passed: 0, failed: 0 };

/** Runs a command with its output shown; true if it exits 0. */
async function shown(
  command: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<boolean> {
  const child = new Deno.Command(command, { args, cwd: ROOT, env, stdin: "null" }).spawn();
  return (await child.status).success;
}

/** A check that counts as one: its name and verdict are printed. */
async function check(name: string, args: string[]): Promise<void> {
  const started = performance.now();
  const ok = await shown(Deno.execPath(), args);
  total[ok ? "passed" : "failed"] += 1;
  console.log(
    `${ok ? "ok    " : "FAILED"} ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`,
  );
}

/**
 * Adds the counts of a JUnit report. A report that is missing or counts nothing is a failure, never
 * a pass.
 */
async function addReport(name: string, path: string, exitedWell: boolean): Promise<void> {
  const text = await Deno.readTextFile(path).catch(() => "");
  const suites = [...text.matchAll(/<testsuite\s([^>]*)>/g)].map((match) => match[1]!);
  const sum = (field: string) =>
    suites.reduce(
      (n, attributes) => n + Number(new RegExp(`\\b${field}="(\\d+)"`).exec(attributes)?.[1] ?? 0),
      0,
    );
  const failed = sum("failures") + sum("errors");
  const skipped = sum("skipped") + sum("disabled");
  const passed = sum("tests") - failed - skipped;
  total.passed += passed;
  total.failed += failed;
  const inCi = Deno.env.get("CI") === "true";
  if (passed + failed === 0 || (!exitedWell && failed === 0) || (inCi && skipped > 0)) {
    total.failed += 1;
  }
  console.log(
    `${name}: ${passed} passed, ${failed} failed, ${skipped} skipped${
      exitedWell ? "" : " (exited with an error)"
    }`,
  );
}

async function testFiles(dir: string, pattern: RegExp): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of Deno.readDir(`${ROOT}${dir}`)) {
    const path = `${dir}/${entry.name}`;
    if (entry.isDirectory) found.push(...await testFiles(path, pattern));
    else if (pattern.test(entry.name)) found.push(path);
  }
  return found.sort();
}

const wanted = Deno.args.filter((argument) => !argument.startsWith("-"));
const chosen = (files: string[]) =>
  wanted.length ? files.filter((file) => wanted.some((part) => file.includes(part))) : files;

if (wanted.length === 0) {
  const line = missingLine(missingTools());
  if (line !== null) console.log(line);
  await check("format", ["fmt", "--check", "--quiet"]);
  await check("lint", ["lint", "--quiet"]);
  await check("types", ["check", "--quiet", "."]);
}

const env = await ensureTestEnvironments();

/** Longest silence of a suite: what finishes no test for so long hangs, and would hang CI too. */
const SILENCE_LIMIT_MS = 15 * 60_000;
/** What Deno prints of a test that still runs: no progress. */
const STILL_RUNNING = /has been running for over/;

/** Tests of one process. Its name stands before each line, as two suites print at once. */
type Suite = { name: string; report: string };

/**
 * Runs a suite and shows its lines as they come. It writes to a file: a pipe would stay open for as
 * long as a process that a test left behind. One that is silent too long is killed, and fails.
 */
async function run(
  { name, report }: Suite,
  argv: string[],
  env: Record<string, string>,
): Promise<void> {
  const said = `${report}.log`;
  await Deno.writeTextFile(said, "");
  const child = new Deno.Command("sh", {
    args: ["-c", 'exec "$@" > "$0" 2>&1', said, ...argv],
    cwd: ROOT,
    env,
    stdin: "null",
  }).spawn();
  let shown = 0;
  let progressAt = performance.now();
  const show = async (whole: boolean) => {
    const text = await Deno.readTextFile(said);
    const end = whole ? text.length : text.lastIndexOf("\n") + 1;
    if (end <= shown) return;
    const lines = text.slice(shown, end).trimEnd().split("\n");
    shown = end;
    if (!lines.every((line) => STILL_RUNNING.test(line))) progressAt = performance.now();
    for (const line of lines) console.log(`${name} | ${line}`);
  };
  const watch = setInterval(async () => {
    await show(false);
    if (performance.now() - progressAt < SILENCE_LIMIT_MS) return;
    clearInterval(watch);
    console.log(`${name} | Killed: no test has ended for ${SILENCE_LIMIT_MS / 60_000} minutes.`);
    child.kill("SIGKILL");
  }, 1000);
  const { success } = await child.status;
  clearInterval(watch);
  await show(true);
  await addReport(name, report, success);
}

async function runDeno(suite: Suite, files: string[]): Promise<void> {
  const argv = [Deno.execPath(), "test", "-A", "--quiet", `--junit-path=${suite.report}`, ...files];
  if (files.length > 0) await run(suite, argv, env);
}

async function runPython(files: string[]): Promise<void> {
  const report = `${REPORTS}/pytest.xml`;
  const pytest = [
    "-m",
    "pytest",
    "-v",
    "-o",
    "faulthandler_timeout=600",
    "-p",
    "no:cacheprovider",
    `--junitxml=${report}`,
  ];
  const places = { ...env, PYTHONPATH: `${ROOT}workers/python` };
  if (files.length === 0) return;
  await run({ name: "pytest", report }, [env.HOLDFAST_TEST_PYTHON!, ...pytest, ...files], places);
}

/** Tests of whole runs: real processes, which start, wait and are killed. */
const WHOLE_RUNS = /^tests\/(crash|docs|e2e|recorded)\//;

const deno = chosen(await testFiles("tests", /_test\.ts$/));
const python = chosen(await testFiles("tests/python", /^test_.*\.py$/));
const wholeRuns = { name: "Deno, whole runs", report: `${REPORTS}/whole_runs.xml` };
const others = { name: "Deno", report: `${REPORTS}/deno.xml` };
// Side by side: whole runs alone leave a fifth of two cores idle.
await Promise.all([
  runDeno(wholeRuns, deno.filter((file) => WHOLE_RUNS.test(file))),
  runDeno(others, deno.filter((file) => !WHOLE_RUNS.test(file))).then(() => runPython(python)),
]);

console.log(`${total.passed} passed, ${total.failed} failed`);
Deno.exit(total.failed === 0 && total.passed > 0 ? 0 : 1);
