import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { findPython, runPython } from "../../../workers/mod.ts";
import { runCommand } from "../../../workers/processes/run_command.ts";

const python = (await findPython()).path;
/** A module of Python's own that runs its arguments, one a line. */
const running = (...lines: string[]) => ({
  module: "timeit",
  args: ["-n1", "-r1", ...lines],
  input: "",
});

async function groupOf(pid: number): Promise<string> {
  const { stdout } = await new Deno.Command("ps", { args: ["-o", "pgid=", "-p", `${pid}`] })
    .output();
  return new TextDecoder().decode(stdout).trim();
}

Deno.test("the terminal's Ctrl-C reaches no process that runCommand() or runPython() starts", async () => {
  const testGroup = await groupOf(Deno.pid);
  const { lines } = await runCommand([python, "-c", "import os; print(os.getpgrp())"]);
  const { stdout } = await runPython(python, running("import os; print(os.getpgrp())"));
  const groups = [lines[0]!, stdout.split("\n")[0]!];
  deepStrictEqual(groups.map((group) => [/^\d+$/.test(group), group === testGroup]), [
    [true, false],
    [true, false],
  ]);
});

Deno.test("runCommand() needs nothing on PATH, and leaves PATH to the command", async () => {
  const command = [python, "-c", "import os; print(os.environ['PATH'])"];
  deepStrictEqual(await runCommand(command, { env: { PATH: "/nowhere" } }), {
    success: true,
    code: 0,
    lines: ["/nowhere"],
  });
});

Deno.test("runPython() ends the module and rejects with the signal's reason", async () => {
  const dir = await Deno.makeTempDir({ prefix: "guarded_process_test_" });
  try {
    const fifo = `${dir}/fifo`;
    await new Deno.Command("mkfifo", { args: [fifo] }).output();
    const stop = new AbortController();
    const stubborn = running(
      "import signal, time",
      "for one in (signal.SIGINT, signal.SIGTERM): signal.signal(one, signal.SIG_IGN)",
      `file = open(${JSON.stringify(fifo)}, "w")`,
      'print("started", file=file, flush=True)',
      "time.sleep(600)",
    );
    const ran = rejects(
      runPython(python, { ...stubborn, signal: stop.signal }),
      /^Error: enough$/,
    );
    const file = await Deno.open(fifo);
    const buffer = new Uint8Array(8);
    await file.read(buffer);
    stop.abort(new Error("enough"));
    await ran;
    strictEqual(await file.read(buffer), null); // It has ended.
    file.close();
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
