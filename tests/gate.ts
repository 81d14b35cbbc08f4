/**
 * The gate: `deno task test`. Format, lint with the import table, types, fresh schemas, then every
 * test of both languages, with the Python environments made first. Ends with one line
 * `N passed, N failed` that counts all of it.
 *
 * Arguments narrow the run: `deno task test engine` runs the tests whose path contains "engine".
 */
import { ensureTestEnvironments } from "./environments.ts";
import { spawnToFile } from "./spawn_to_file.ts";
import { missingLine, missingTools } from "./tools.ts";

const ROOT = new URL("../", import.meta.url).pathname;
const REPORTS = await Deno.makeTempDir({ prefix: "holdfast-gate-" });

type Count = { passed: number; failed: number };
const total: Count = { passed: 0, failed: 0 };
/** Of each suite that failed, its last lines. */
const last: string[] = [];
/** Of each suite that hung, its processes. */
const hung: string[] = [];

/** Tests of one process. Its name stands before each line, as two suites print at once. */
type Suite = { name: string; report: string };
/** Where a suite's output goes. */
const said = (report: string) => `${report}.log`;

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
async function addReport({ name, report }: Suite, ended: Deno.CommandStatus): Promise<void> {
  const text = await Deno.readTextFile(report).catch(() => "");
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
  const alsoFailed = passed + failed === 0 || (!ended.success && failed === 0) ||
    (inCi && skipped > 0);
  if (alsoFailed) total.failed += 1;
  console.log(`${name}: ${passed} passed, ${failed} failed, ${skipped} skipped`);
  if (failed > 0 || alsoFailed) last.push(await lastLines({ name, report }, ended));
}

/** Lines of a suite that failed which are shown again at the end: there its failures are listed. */
const LAST_LINES = 60;

/** How a suite ended and its last lines, for the end of the gate's output. */
async function lastLines({ name, report }: Suite, ended: Deno.CommandStatus): Promise<string> {
  const how = ended.signal ?? `exit code ${ended.code}`;
  const lines = (await Deno.readTextFile(said(report))).trimEnd().split("\n").slice(-LAST_LINES);
  return [`${name} failed (${how}). Its last lines:`, ...lines].join("\n");
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
const SILENCE_LIMIT_MS = 20 * 60_000;
/** What Deno prints of a test that still runs: no progress. */
const STILL_RUNNING = /has been running for over/;

/** Processes below one, and what each of them runs: where a suite hangs. */
async function processesBelow(pid: number): Promise<string[]> {
  const { stdout } = await new Deno.Command("ps", {
    args: ["-e", "-o", "pid=,ppid=,stat=,etime=,args="],
  }).output();
  const all = new TextDecoder().decode(stdout).split("\n").map((line) => line.trim());
  const below = (parent: string): string[] =>
    all.filter((line) => line.split(/\s+/)[1] === parent)
      .flatMap((line) => [line, ...below(line.split(/\s+/)[0]!)]);
  return below(String(pid));
}

/**
 * Runs a suite and shows its lines as they come. One that is silent too long is killed, and fails.
 */
async function run(suite: Suite, argv: string[], env: Record<string, string>): Promise<void> {
  const { name } = suite;
  const path = said(suite.report);
  await Deno.writeTextFile(path, "");
  const child = spawnToFile(argv, { path, cwd: ROOT, env });
  let shown = 0;
  let progressAt = performance.now();
  const show = async (whole: boolean) => {
    const text = await Deno.readTextFile(path);
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
    const below = await processesBelow(child.pid).catch((error) => [String(error)]);
    child.kill("SIGKILL");
    hung.push(
      `${name} was killed because no test had ended for ${SILENCE_LIMIT_MS / 60_000} minutes. ` +
        "It had these processes (pid, parent, state, age):",
      ...below,
    );
  }, 1000);
  const ended = await child.status;
  clearInterval(watch);
  await show(true);
  await addReport(suite, ended);
}

async function runDeno(suite: Suite, files: string[]): Promise<void> {
  const argv = [Deno.execPath(), "test", "-A", "--quiet", `--junit-path=${suite.report}`, ...files];
  if (files.length > 0) await run(suite, argv, env);
}

async function runPython(suite: Suite, files: string[]): Promise<void> {
  const pytest = [
    "-m",
    "pytest",
    "-v",
    "-o",
    "faulthandler_timeout=600",
    "-p",
    "no:cacheprovider",
    `--junitxml=${suite.report}`,
  ];
  const places = { ...env, PYTHONPATH: `${ROOT}workers/python` };
  await run(suite, [env.HOLDFAST_TEST_PYTHON!, ...pytest, ...files], places);
}

/** Tests of whole runs: real processes, which start, wait and are killed. */
const WHOLE_RUNS = /^tests\/(crash|docs|e2e|recorded)\//;

const deno = chosen(await testFiles("tests", /_test\.ts$/));
const python = chosen(await testFiles("tests/python", /^test_.*\.py$/));
const wholeRuns = { name: "Deno, whole runs", report: `${REPORTS}/whole_runs.xml` };
const others = { name: "Deno", report: `${REPORTS}/deno.xml` };
/** Python's tests in parts, so that the lane that is free first takes the next one. */
const PYTHON_PARTS = 4;
const pythonPart = (part: number) =>
  python.slice(
    Math.round(python.length * part / PYTHON_PARTS),
    Math.round(python.length * (part + 1) / PYTHON_PARTS),
  );
const suites = [
  () => runDeno(wholeRuns, deno.filter((file) => WHOLE_RUNS.test(file))),
  () => runDeno(others, deno.filter((file) => !WHOLE_RUNS.test(file))),
  ...Array.from({ length: PYTHON_PARTS }, (_, part) => pythonPart(part))
    .filter((files) => files.length > 0)
    .map((files, i) => () =>
      runPython({ name: `pytest ${i + 1}`, report: `${REPORTS}/pytest_${i + 1}.xml` }, files)
    ),
];
async function lane(): Promise<void> {
  for (let next = suites.shift(); next; next = suites.shift()) await next();
}
// Two lanes side by side: whole runs alone leave a fifth of two cores idle.
await Promise.all([lane(), lane()]);

for (const lines of [...last, ...hung]) console.log(lines);
console.log(`${total.passed} passed, ${total.failed} failed`);
Deno.exit(total.failed === 0 && total.passed > 0 ? 0 : 1);
