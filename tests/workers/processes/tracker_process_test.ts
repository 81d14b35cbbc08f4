import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { systemClock } from "../../../engine/mod.ts";
import {
  leftBehind,
  nonceCarriers,
  processNonce,
} from "../../../workers/processes/process_sweep.ts";
import { endEarlierTrackers, startTracker } from "../../../workers/processes/tracker_process.ts";
import { homeNonce } from "../../../workers/processes/process_sweep.ts";
import { withHome } from "../fixtures.ts";

/** Answers every line with its environment's names. */
const NAMES_OF = "env | cut -d= -f1 | tr '\\n' ' '";
const ECHO = `while read -r line; do printf '{"failed":"%s"}\\n' "$(${NAMES_OF})"; done`;

type Process = Awaited<ReturnType<typeof startTracker>>;

async function started(home: string, script: string, name = "a_0"): Promise<Process> {
  return await startTracker({
    name,
    python: "/bin/sh",
    home,
    run: "run",
    log_path: `${home}/logs/tracker.log`,
    variables: ["WANDB_"],
    clock: systemClock,
    args: ["-c", script],
  });
}

const carriersOf = (nonce: string) => nonceCarriers().filter((one) => one.nonce.home === nonce);

Deno.test("a tracker's process inherits its own variables, and no other secret", async () => {
  const secrets = ["WANDB_API_KEY", "MLFLOW_TRACKING_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD"];
  for (const name of secrets) Deno.env.set(name, "secret");
  try {
    await withHome(async (home) => {
      const process = await started(home, ECHO);
      const { failed } = await process.ask({}) as { failed: string };
      await process.end();
      const names = failed.split(" ");
      deepStrictEqual(secrets.filter((name) => names.includes(name)), ["WANDB_API_KEY"]);
      ok(names.includes("PATH") && names.includes("PYTHONPATH"));
    });
  } finally {
    for (const name of secrets) Deno.env.delete(name);
  }
});

Deno.test("a process that dies says how, and its output is in the log", async () => {
  await withHome(async (home) => {
    const process = await started(home, "echo why >&2; exit 3");
    const answer = await process.ask({}) as { failed: string };
    match(answer.failed, /^its process ended with exit code 3 \(log: .*tracker\.log\)$/);
    strictEqual(await Deno.readTextFile(`${home}/logs/tracker.log`), "why\n");
    await process.end();
  });
});

Deno.test("the end of a process ends what it started, and no other tracker", async () => {
  await withHome(async (home) => {
    const script = `setsid sleep 600 & echo '{"ended":true}'; read -r line`;
    const [one, other] = [await started(home, script), await started(home, script, "b_1")];
    await Promise.all([one.ask({}), other.ask({})]);
    const nonce = await homeNonce(home);
    await one.end();
    deepStrictEqual(
      new Set(carriersOf(nonce).map((carrier) => carrier.nonce.host)),
      new Set(["~tracker.b_1"]),
    );
    // A start of workers leaves the trackers of its own engine alone.
    const engineNonce = processNonce(nonce, "run");
    ok(carriersOf(nonce).every((carrier) => !leftBehind(engineNonce)(carrier.nonce)));
    ok(
      carriersOf(nonce).every((carrier) =>
        leftBehind({ ...engineNonce, engine_pid: engineNonce.engine_pid + 1 })(carrier.nonce)
      ),
    );
    await endEarlierTrackers({ home, run: "run" });
    deepStrictEqual(carriersOf(nonce), []);
    await other.end();
  });
});
