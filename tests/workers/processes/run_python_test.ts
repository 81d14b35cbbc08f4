import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { findPython, runPython } from "../../../workers/mod.ts";

const python = (await findPython()).path;

Deno.test("runPython() runs a module with its arguments and its input", async () => {
  const output = await runPython(python, {
    module: "json.tool",
    args: ["--compact"],
    input: '{ "a": "é" }',
  });
  deepStrictEqual(output, { code: 0, stdout: '{"a":"\\u00e9"}\n', stderr: "" });
});

Deno.test("runPython() gives the exit code and the errors of a module that fails", async () => {
  const { code, stderr } = await runPython(python, { module: "json.tool", input: "{" });
  strictEqual(code, 1);
  match(stderr, /Expecting property name/);
});

Deno.test("runPython() survives a module that ends before it has read its input", async () => {
  const input = "x".repeat(10_000_000); // More than a pipe holds.
  const { code, stderr } = await runPython(python, { module: "no_such_module", input });
  strictEqual(code, 1);
  match(stderr, /No module named no_such_module/);
});

Deno.test("runPython() finds our package", async () => {
  const { code, stderr } = await runPython(python, {
    module: "holdfast_worker.limits",
    input: "",
  });
  deepStrictEqual([code, stderr], [0, ""]);
});
