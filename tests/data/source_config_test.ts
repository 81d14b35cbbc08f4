import { deepStrictEqual } from "node:assert/strict";
import { SourceConfig } from "../../data/mod.ts";

const refused = (changes: object) =>
  SourceConfig.safeParse({ path: "rows.jsonl", ...changes }).error?.issues.map((issue) =>
    issue.code === "unrecognized_keys"
      ? [...issue.path, ...issue.keys].join(".")
      : issue.path.join(".")
  );

Deno.test("SourceConfig of a path alone reads every row as it is and refuses repeated ids", () => {
  const whole = { path: "rows.jsonl", duplicates: "refuse", prompt_as: "as_is", fields: {} };
  deepStrictEqual(SourceConfig.parse({ path: "rows.jsonl" }), whole);
  deepStrictEqual(SourceConfig.parse(whole), whole);
});

Deno.test("SourceConfig has a path, and a name and a limit that mean something", () => {
  deepStrictEqual(refused({ path: "" }), ["path"]);
  deepStrictEqual(refused({ name: "" }), ["name"]);
  deepStrictEqual(refused({ limit: 0 }), ["limit"]);
  deepStrictEqual(refused({ limit: 1, name: "a" }), undefined);
});

Deno.test("SourceConfig refuses a field that no row has a use for", () => {
  deepStrictEqual(refused({ fields: { question: "q" } }), ["fields.question"]);
  deepStrictEqual(refused({ field: { prompt: "q" } }), ["field"]);
  deepStrictEqual(refused({ fields: { prompt: "a.b" } }), undefined);
});

Deno.test("an empty system message and an empty instruction are texts, not absent ones", () => {
  const { system, instruction } = SourceConfig.parse({ path: "x", system: "", instruction: "" });
  deepStrictEqual([system, instruction], ["", ""]);
});
