import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { runCommand } from "../../../workers/processes/run_command.ts";
import { gate } from "../fixtures.ts";

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
  let lineCount = 0;
  const { lines, success } = await runCommand(sh("seq 1000"), { onLine: () => void lineCount++ });
  deepStrictEqual([success, lineCount, lines.length], [true, 1000, 400]);
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

Deno.test("runCommand() with a group of its own gives code and lines, and leaves the terminal's", async () => {
  const testGroup = new TextDecoder().decode(
    (await new Deno.Command("ps", { args: ["-o", "pgid=", "-p", `${Deno.pid}`] }).output()).stdout,
  );
  const { code, lines } = await runCommand(sh("ps -o pgid= -p $$; cat; exit 3"));
  deepStrictEqual([code, lines.length], [3, 1]);
  ok(lines[0] !== testGroup.trimEnd(), String(lines[0]));
});

/** Ends when no process has the fifo open for writing any more. */
async function withFifo(body: (fifo: string, ended: Promise<string>) => Promise<void>) {
  const dir = await Deno.makeTempDir({ prefix: "run_command_test_" });
  const fifo = `${dir}/fifo`;
  await new Deno.Command("mkfifo", { args: [fifo] }).output();
  try {
    await body(fifo, Deno.readTextFile(fifo));
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/** Ignores what can be ignored, and so does a process that it leaves. */
const stubborn = (fifo: string) =>
  sh(`exec 9>'${fifo}'; trap '' INT TERM HUP; sleep 600 & echo started; wait`);

Deno.test("runCommand() with a group of its own ends all of it at once", () =>
  withFifo(async (fifo, ended) => {
    const stop = new AbortController();
    const ran = runCommand(stubborn(fifo), {
      signal: stop.signal,
      onLine: () => stop.abort(new Error("Ctrl-C")),
    });
    await rejects(ran, /Ctrl-C/);
    strictEqual(await ended, "");
  }));

Deno.test("runCommand() with a group of its own starts nothing after its signal", async () => {
  const signal = AbortSignal.abort(new Error("Ctrl-C"));
  await rejects(runCommand(sh("true"), { signal }), /Ctrl-C/);
});

Deno.test("a group of a command ends with the process that runs it, even by SIGKILL", () =>
  withFifo(async (fifo, ended) => {
    const module = new URL("../../../workers/processes/run_command.ts", import.meta.url).href;
    const argv = JSON.stringify(stubborn(fifo));
    const script = `import { runCommand } from ${JSON.stringify(module)};` +
      `await runCommand(${argv}, { onLine: () => Deno.kill(Deno.pid, "SIGKILL") });`;
    const { signal } = await new Deno.Command(Deno.execPath(), { args: ["eval", script] }).output();
    deepStrictEqual([signal, await ended], ["SIGKILL", ""]);
  }));
