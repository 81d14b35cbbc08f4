import { match, strictEqual } from "node:assert/strict";
import { systemClock } from "../../../engine/mod.ts";
import { IMPORT_FIX } from "../../../workers/failures/causes.ts";
import { localLauncher } from "../../../workers/mod.ts";
import { homeNonce, processNonce } from "../../../workers/processes/process_sweep.ts";

/** An agent whose interpreter is this shell script. */
async function launched(script: string) {
  const home = await Deno.makeTempDir({ prefix: "launcher_" });
  const python = `${home}/python`;
  await Deno.writeTextFile(python, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const nonce = processNonce(await homeNonce(home), "run");
  const places = { home, artifacts_dir: `${home}/artifacts`, faults_dir: `${home}/faults` };
  const launcher = localLauncher({ python, nonce, clock: systemClock, ...places });
  return {
    home,
    agent: await launcher.start({
      agent_id: "a",
      hub_file: "",
      log_path: `${home}/logs/agent.log`,
    }),
  };
}

Deno.test("localLauncher(): a dead agent's last words come before its log", async () => {
  const { home, agent } = await launched(
    `echo "Traceback:" >&2; echo "ImportError: no websockets" >&2; exit 1`,
  );
  strictEqual(
    await agent.exited,
    "the agent ended with exit code 1: ImportError: no websockets\n  | Traceback:\n" +
      "  | ImportError: no websockets\n" +
      `  log: ${home}/logs/agent.log\n  fix: ${IMPORT_FIX}\n  next: deno task rl doctor`,
  );
});

Deno.test("localLauncher(): destroy() ends the agent and what it started", async () => {
  const { agent } = await launched(`sleep 100 & exec sleep 100`);
  await agent.destroy();
  match(await agent.exited, /^the agent was killed by SIGKILL/);
});
