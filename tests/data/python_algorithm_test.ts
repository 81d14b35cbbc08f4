import { deepStrictEqual } from "node:assert/strict";
import { AssignedCredit, PythonLoss, PythonSettings, PythonSource } from "../../data/mod.ts";

const source = { file: "mine.py", source: "def loss(x, c, s): ...\n", settings: { clip: 0.2 } };
const refused = (changes: object) =>
  PythonLoss.safeParse({ version: 1, python: { ...source, part: "loss", ...changes } })
    .error?.issues.map(({ path }) => path.join("."));

Deno.test("PythonSource records the file's text byte for byte", () => {
  const text = "# é\r\n\tdef loss(): ...  \n\n";
  deepStrictEqual(PythonSource.parse({ ...source, source: text }).source, text);
});

Deno.test("PythonSettings are scalars and lists of them, which Python and JSON read alike", () => {
  const settings = { a: 1, b: "x", c: false, d: null, e: [1, "x", null, true], f: [] };
  deepStrictEqual(PythonSettings.parse(settings), settings);
  for (const value of [{ nested: 1 }, [[1]], NaN, Infinity, undefined]) {
    deepStrictEqual(PythonSettings.safeParse({ value }).success, false, String(value));
  }
});

Deno.test("PythonLoss names one of the file's two losses, at version 1", () => {
  deepStrictEqual(refused({}), undefined);
  deepStrictEqual(refused({ part: "value_loss" }), undefined);
  deepStrictEqual(refused({ part: "credit" }), ["python.part"]);
  const later = { version: 2, python: { ...source, part: "loss" } };
  deepStrictEqual(PythonLoss.safeParse(later).error?.issues.map(({ path }) => path), [["version"]]);
});

Deno.test("AssignedCredit's advantage is per sequence or per token, and never mixed", () => {
  const read = (advantage: unknown) => AssignedCredit.safeParse({ advantage }).success;
  const cases = [[1, -1], [[1, 2], []], [], [1, [2]], [NaN], [null]];
  deepStrictEqual(cases.map(read), [true, true, true, false, false, false]);
});

Deno.test("AssignedCredit's returns are per token", () => {
  const read = (returns: unknown) => AssignedCredit.safeParse({ advantage: [1], returns }).success;
  deepStrictEqual([[[0.5]], [0.5]].map(read), [true, false]);
});
