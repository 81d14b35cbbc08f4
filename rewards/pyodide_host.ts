/**
 * The process of the sandbox `pyodide`: Python compiled to WebAssembly, in a Deno that may only
 * read Pyodide's own directory. The reward processes start it; it imports nothing of ours.
 *
 * `make DIRECTORY`: starts Python once, with our modules, and writes its memory to standard output.
 * `run DIRECTORY MEMORY`: continues from that memory, which takes a tenth of the time, and speaks
 * in frames over standard input and output.
 */

type Python = {
  runPython(code: string): unknown;
  registerJsModule(name: string, module: object): void;
  setStdin(how: { read(into: Uint8Array): number }): void;
  setStdout(how: { write(data: Uint8Array): number }): void;
  setStderr(how: { write(data: Uint8Array): number }): void;
  makeMemorySnapshot(): Uint8Array;
};

/** Modules that are in memory from the start: those that our side needs, and common ones. */
const IMPORTED = "ast, asyncio, base64, bisect, builtins, collections, copy, decimal, fractions, " +
  "functools, heapq, importlib, inspect, io, itertools, json, math, operator, random, re, " +
  "string, struct, sys, traceback, types, typing, unittest";

const SIDES = "holdfast_worker.rewards.sandbox.sides";
/** Our modules, by name. */
const DEFINED = `
import json, sys, types
for _name, _source in json.loads(_modules).items():
    _module = sys.modules[_name] = types.ModuleType(_name)
    exec(compile(_source, _name, "exec"), _module.__dict__)
`;
/** Runs whole programs; @see rewards/sandbox/sides.py, whose `serve` calls it. */
const SCRIPT = `
import os as _os
_in, _out = _os.dup(0), _os.dup(1)
def _script(message):
    import io, os, sys, traceback
    os.dup2(_in, 0)
    os.dup2(_out, 1)
    _channel.begin(message["stdin"], message["output_bytes_max"])
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), "utf-8", "replace")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8",
        "replace", write_through=False)
    code, error = 0, ""
    try:
        exec(compile(message["source"], "program.py", "exec"), {"__name__": "__main__"})
    except SystemExit as exit:
        code = 0 if exit.code in (None, 0) else 1
        error = f"it ended with exit code {exit.code}" if code else ""
    except BaseException as raised:
        code, error = 1, "".join(traceback.format_exception_only(raised)).strip()[-300:]
    output = sys.stdout
    try:
        output.flush()
    except BaseException:
        pass
    return {"code": code, "error": error, "output": _channel.output()}
`;

async function main([verb, directory, snapshot]: string[]): Promise<void> {
  const { loadPyodide } = await import(`file://${directory}/pyodide.mjs`) as {
    loadPyodide(options: Record<string, unknown>): Promise<Python>;
  };
  const indexURL = `${directory}/`;
  if (verb === "make") {
    const python = await loadPyodide({ indexURL, _makeSnapshot: true });
    python.runPython(`import ${IMPORTED}\n_modules = ${JSON.stringify(receive())}\n${DEFINED}`);
    writeAll(python.makeMemorySnapshot());
    return;
  }
  const _loadSnapshot = Deno.readFileSync(snapshot!);
  serve(await loadPyodide({ indexURL, _loadSnapshot }));
}

/** Until standard input ends: every read blocks, as does every write. */
function serve(python: Python): void {
  let input = new Uint8Array();
  let printed: Uint8Array[] = [];
  let remaining = 0;
  python.setStdin({
    read(into) {
      const part = input.subarray(0, into.length);
      into.set(part);
      input = input.subarray(part.length);
      return part.length;
    },
  });
  const keep = (data: Uint8Array) => {
    remaining -= data.length;
    if (remaining < 0) throw new RangeError("too much output"); // For the program an OSError.
    printed.push(data.slice());
    return data.length;
  };
  python.setStdout({ write: keep });
  python.setStderr({ write: (data) => data.length });
  python.registerJsModule("_holdfast_channel", {
    receive,
    send,
    begin(text: string, bytesMax: number) {
      input = new TextEncoder().encode(text);
      [printed, remaining] = [[], bytesMax];
    },
    /** null: it was more than `bytesMax`. */
    output: () => remaining < 0 ? null : new TextDecoder().decode(joined(printed)),
  });
  python.runPython(
    `import _holdfast_channel as _channel\n${SCRIPT}\nfrom ${SIDES} import serve\n` +
      `serve(${JSON.stringify(receive())}, _channel.receive, _channel.send, _script)`,
  );
}

function receive(): string {
  const length = new DataView(readExactly(4).buffer).getUint32(0);
  return new TextDecoder().decode(readExactly(length));
}

function send(text: string): void {
  const body = new TextEncoder().encode(text);
  const frame = new Uint8Array(4 + body.length);
  new DataView(frame.buffer).setUint32(0, body.length);
  frame.set(body, 4);
  writeAll(frame);
}

function readExactly(length: number): Uint8Array<ArrayBuffer> {
  const data = new Uint8Array(length);
  for (let at = 0; at < length;) {
    const count = Deno.stdin.readSync(data.subarray(at));
    if (count === null) Deno.exit(0);
    at += count;
  }
  return data;
}

function writeAll(data: Uint8Array): void {
  for (let at = 0; at < data.length;) at += Deno.stdout.writeSync(data.subarray(at));
}

function joined(parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

if (import.meta.main) {
  try {
    await main(Deno.args);
  } catch (error) {
    // The interpreter has ended, by os._exit() or a fault.
    await Deno.stderr.write(new TextEncoder().encode(`\ncrash: ${String(error).split("\n")[0]}`));
    Deno.exit(1);
  }
}
