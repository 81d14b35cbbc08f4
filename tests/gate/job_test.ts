import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { type Job, problemOf, runJob, Running } from "./job.ts";

const ENDED: Deno.CommandStatus = { success: true, code: 0, signal: null };
const passed = {
  file: "a_test.ts",
  name: "a",
  seconds: 0,
  outcome: "passed",
} as const;
const files = ["a_test.ts", "b_test.ts"];

Deno.test("problemOf() names a report without tests, a file without one, and a bad end after good tests", () => {
  strictEqual(
    problemOf({ files }, { cases: [], seconds_of: new Map(), status: ENDED }),
    "it reported no test (exit code 0)",
  );
  strictEqual(
    problemOf({ files }, {
      cases: [passed],
      seconds_of: new Map([["a_test.ts", 0]]),
      status: ENDED,
    }),
    "no test ran in b_test.ts (exit code 0)",
  );
  const both = [passed, { ...passed, file: "b_test.ts" }];
  const seconds_of = new Map(files.map((file) => [file, 0]));
  strictEqual(problemOf({ files }, { cases: both, seconds_of, status: ENDED }), null);
  const killed = { success: false, code: 137, signal: "SIGKILL" } as const;
  strictEqual(
    problemOf({ files }, { cases: both, seconds_of, status: killed }),
    "every test passed, but SIGKILL",
  );
  const failed = { ...passed, file: "b_test.ts", outcome: "failed" } as const;
  strictEqual(
    problemOf({ files }, { cases: [passed, failed], seconds_of, status: killed }),
    null,
  );
});

async function withJob(
  script: string,
  body: (job: Job) => Promise<void>,
): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-job-" });
  try {
    await body({
      name: "job",
      files: ["a_test.ts"],
      dir,
      argv: ["sh", "-c", script],
    });
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("runJob() gives a job's tests, its output without colours, and forgets it when it ended", async () => {
  const report =
    `<testsuite name="./a_test.ts"><testcase name="a" classname="./a_test.ts" time="0" /></testsuite>`;
  await withJob("", async (job) => {
    const running = new Running();
    const script =
      `printf 'running 1 test from ./a_test.ts\\na ... \\033[32mok\\033[0m (0ms)\\n'; echo '${report}' > '${job.dir}/report.xml'`;
    const options = { silence_ms: 60_000, running };
    const ended = await runJob({ ...job, argv: ["sh", "-c", script] }, options);
    deepStrictEqual([ended.cases, ended.problem, ended.output], [
      [passed],
      null,
      "running 1 test from ./a_test.ts\na ... ok (0ms)",
    ]);
    strictEqual(running.size, 0);
  });
});

Deno.test("runJob() kills a job that is silent for too long, and says at which test and what runs", async () => {
  await withJob("printf 'a test ... '; sleep 600; :", async (job) => {
    const { problem, cases } = await runJob(job, {
      silence_ms: 1,
      running: new Running(),
    });
    deepStrictEqual(cases, []);
    match(
      problem!,
      /^no test ended for 0\.001 s at: a test \.\.\.[^]*sleep 600/,
    );
  });
});
