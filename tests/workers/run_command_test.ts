import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { runCommand } from "../../workers/run_command.ts";
import { gate } from "./fixtures.ts";

const sh = (script: string) => ["sh", "-c", script];

Deno.test("runCommand() gives the exit code and the lines of both streams", async () => {
  const seen: string[] = [];
  const outcome = await runCommand(sh("echo out; echo err >&2; exit 3"), {
    onLine: (line) => void seen.push(line),
  });
  deepStrictEqual([outcome.success, outcome.code], [false, 3]);
  deepStrictEqual(outcome.lines.toSorted(), ["err", "out"]);
  deepStrictEqual(seen, outcome.lines);
});

Deno.test("runCommand() keeps the last 400 lines, and tells of each", async () => {
  let told = 0;
  const { lines, success } = await runCommand(sh("seq 1000"), { onLine: () => void told++ });
  deepStrictEqual([success, told, lines.length], [true, 1000, 400]);
  deepStrictEqual([lines[0], lines.at(-1)], ["601", "1000"]);
});

Deno.test("runCommand(): a command that cannot be started is an outcome of code 127", async () => {
  const { success, code, lines } = await runCommand(["/no/such/command"]);
  deepStrictEqual([success, code, lines.length], [false, 127, 1]);
  ok(lines[0]!.includes("/no/such/command"), lines[0]!);
});

Deno.test("runCommand() adds variables, or replaces the environment", async () => {
  const argv = ["/bin/sh", "-c", "echo $A-$HOME"];
  const env = { A: "1" };
  deepStrictEqual((await runCommand(argv, { env })).lines, [`1-${Deno.env.get("HOME") ?? ""}`]);
  deepStrictEqual((await runCommand(argv, { env, clear_env: true })).lines, ["1-"]);
});

Deno.test("runCommand() ends the command and rejects with the signal's reason", async () => {
  const stop = new AbortController();
  const started = gate();
  const ran = runCommand(["sh", "-c", "echo $$; exec sleep 60"], {
    signal: stop.signal,
    onLine: (line) => {
      ok(/^\d+$/.test(line));
      started.open();
    },
  });
  await started.opened;
  stop.abort(new Error("enough"));
  await rejects(ran, /^Error: enough$/);
});

Deno.test("runCommand() gives the command no input to wait for", async () => {
  strictEqual((await runCommand(["cat"])).success, true);
});
