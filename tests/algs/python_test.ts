import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import {
  AlgorithmChoice,
  headOf,
  inPython,
  parsePythonAlgorithm,
  PythonAlgorithm,
  refillOf,
  titleOf,
  unpairedOf,
} from "../../algs/mod.ts";
import { unopened } from "../../algs/python.ts";

const FILE = PythonAlgorithm.parse({ name: "python", source: "losses/my.py" });

Deno.test("parsePythonAlgorithm() takes a path of a Python file, and nothing else", () => {
  strictEqual(parsePythonAlgorithm("losses/my.py"), "losses/my.py");
  strictEqual(parsePythonAlgorithm("grpo"), null);
  strictEqual(parsePythonAlgorithm("my.py.txt"), null);
});

Deno.test("PythonAlgorithm has no settings, value model or hash until a file says so", () => {
  deepStrictEqual(FILE, {
    name: "python",
    source: "losses/my.py",
    settings: {},
    mask_truncated: false,
    refill_batches_max: 0,
    surplus: "discard",
    value_model: false,
    sha256: null,
  });
});

Deno.test("PythonAlgorithm refuses a source that is no Python file", () => {
  const { error } = PythonAlgorithm.safeParse({ name: "python", source: "my.ts" });
  deepStrictEqual(error?.issues.map(({ path, message }) => [path[0], message]), [
    ["source", "must be a path that ends in .py"],
  ]);
});

Deno.test("inPython() knows a file from an algorithm of the table", () => {
  strictEqual(inPython(AlgorithmChoice.parse(FILE)), true);
  strictEqual(inPython(AlgorithmChoice.parse({ name: "grpo" })), false);
});

Deno.test("an algorithm's file draws until a round is full, outputs scores and reads labels if it is said to", () => {
  const file = (changes: object) => AlgorithmChoice.parse({ ...FILE, ...changes });
  strictEqual(refillOf(file({})), null);
  deepStrictEqual(refillOf(file({ refill_batches_max: 4, surplus: "reuse" })), {
    batches_max: 4,
    surplus: "reuse",
  });
  deepStrictEqual([headOf(file({})), headOf(file({ head: "score" }))], [null, "score"]);
  deepStrictEqual([unpairedOf(file({})), unpairedOf(file({ unpaired: {} }))], [
    null,
    { mismatched: false },
  ]);
});

Deno.test("titleOf() is an algorithm's name, or its file's", () => {
  strictEqual(titleOf(AlgorithmChoice.parse(FILE)), "my.py");
  strictEqual(titleOf(AlgorithmChoice.parse({ name: "grpo" })), "grpo");
});

Deno.test("unopened() knows whether a value model is trained, and computes nothing", () => {
  strictEqual(unopened(FILE).value_loss, undefined);
  const file = unopened({ ...FILE, value_model: true });
  const elsewhere = {
    name: "RangeError",
    message: "Cannot compute with losses/my.py here because it is in Python and only a trainer " +
      "opens it, see open_algorithm",
  };
  throws(() => file.loss(null as never, null as never), elsewhere);
  throws(() => file.value_loss!(null as never, null as never), elsewhere);
  throws(() => file.credit!.assign(null as never, null as never), elsewhere);
});
