import { countOf } from "./report.ts";
import { type Ended, type Job, runJob, type Running } from "./job.ts";

/** How often the gate says what runs, so that nobody has to guess where it hangs. */
const TELL_MS = 60_000;
/** Lines of a job that failed which are shown. */
const LAST_LINES = 80;

type Options = {
  /** Jobs side by side. With two lanes, one takes the first jobs and the other the last ones. */
  lanes: 1 | 2;
  silence_ms: number;
  /** What runs now: shared with whoever tells it when the gate is interrupted. */
  running: Running;
  say: (line: string) => void;
};

/** Runs jobs, and says how each ended. */
export async function runJobs(
  jobs: readonly Job[],
  { lanes, silence_ms, running, say }: Options,
): Promise<Ended[]> {
  const waiting = [...jobs];
  const all: Ended[] = [];
  const tell = setInterval(() => say(runningLines(running).join("\n")), TELL_MS);
  const lane = async (next: () => Job | undefined) => {
    for (let job = next(); job && !running.interrupted; job = next()) {
      const ended = await runJob(job, { silence_ms, running });
      all.push(ended);
      say(verdictLine(ended));
      if (hasFailed(ended)) say(lastLines(ended));
    }
  };
  try {
    const ends = [() => waiting.shift(), () => waiting.pop()];
    await Promise.all(ends.slice(0, lanes).map(lane));
  } finally {
    clearInterval(tell);
  }
  return all;
}

/** Whether anything of a job failed. In CI a test that is left out has failed too. */
function hasFailed({ cases, problem }: Ended): boolean {
  const { failed, skipped } = countOf(cases);
  return problem !== null || failed > 0 ||
    (skipped > 0 && Deno.env.get("CI") === "true");
}

/** How many failures a job counts as: its failed tests, or one if something else failed. */
export function failuresOf(ended: Ended): number {
  const { failed } = countOf(ended.cases);
  return failed > 0 || !hasFailed(ended) ? failed : 1;
}

/** Says where the jobs' reports and output are if something failed, else removes them. */
export async function keepIfFailed(dir: string, failed: boolean): Promise<void> {
  if (failed) console.log(`All output and reports: ${dir}`);
  else await Deno.remove(dir, { recursive: true });
}

/** What runs, one line each. */
export function runningLines(running: Running): string[] {
  return [...running].map(({ job, began, at }) =>
    `  running ${job.name} for ${Math.round((performance.now() - began) / 1000)} s: ${at}`
  );
}

function verdictLine(ended: Ended): string {
  const { passed, failed, skipped } = countOf(ended.cases);
  const parts = [
    `${passed} passed`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
  ];
  const verdict = hasFailed(ended) ? "FAILED" : "ok    ";
  return `${verdict} ${ended.job.name}: ${parts.join(", ")} (${ended.seconds.toFixed(1)} s)`;
}

/** Why a job failed: tests by name, its problem, and the end of its output. */
function lastLines({ job, cases, problem, output }: Ended): string {
  const names = cases.filter(({ outcome }) => outcome !== "passed")
    .map(({ outcome, file, name }) => `  ${outcome}: ${file}: ${name}`);
  const lines = output.split("\n").slice(-LAST_LINES).map((line) => `  | ${line}`);
  return [
    ...names,
    ...(problem === null ? [] : [`  ${job.name}: ${problem}`]),
    ...lines,
  ].join(
    "\n",
  );
}
