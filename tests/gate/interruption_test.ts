import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { carrying } from "../processes.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** A gate whose first job starts a process in a session of its own and never ends; others wait. */
const GATE = `
import { untilInterrupted } from "./tests/gate/interruption.ts";
import { runJobs } from "./tests/gate/run_jobs.ts";
const endless = "setsid sleep 600 & echo; printf 'a test ... '; sleep 600";
const job = (name, script) => ({
  name,
  files: [],
  dir: Deno.args[0] + "/" + name,
  argv: ["sh", "-c", script],
});
const next = Array.from({ length: 50 }, () => job("next", "touch " + Deno.args[0] + "/started"));
const options = { lanes: 1, silence_ms: 600_000, say: console.log };
Deno.exit(await untilInterrupted(async (running) => {
  setInterval(() => [...running].some(({ at }) => at !== "") && console.log("runs"), 50);
  await runJobs([job("endless", endless), ...next], { ...options, running });
  return 0;
}));`;

Deno.test("a gate that is interrupted says what ran, starts nothing more and leaves no process, not even one that left its session", async () => {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-interruption-" });
  try {
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", "--no-check", "--ext=ts", "-", dir],
      cwd: ROOT,
      env: { HOLDFAST_MARK: dir },
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    const stdin = child.stdin.getWriter();
    await stdin.write(new TextEncoder().encode(GATE));
    await stdin.close();
    let output = "";
    for await (
      const text of child.stdout.pipeThrough(new TextDecoderStream())
    ) {
      if (!output.includes("runs") && text.includes("runs")) {
        child.kill("SIGTERM");
      }
      output += text;
    }
    const { code } = await child.status;
    strictEqual(code, 143, output);
    match(
      output,
      /Interrupted by SIGTERM\.\n {2}running endless for \d+ s: a test \.\.\./,
    );
    deepStrictEqual(await carrying(`HOLDFAST_MARK=${dir}`), []);
    deepStrictEqual([...Deno.readDirSync(dir)].map(({ name }) => name), ["endless"]);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
