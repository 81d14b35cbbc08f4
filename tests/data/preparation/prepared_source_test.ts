import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { declaredFacts } from "../../../data/setting.ts";
import { PREPARED, PreparedSource, ReadSource } from "../../../data/preparation/prepared_source.ts";
import { SourceConfig } from "../../../data/source_config.ts";

const problem = (keep: object) => {
  const { error } = PreparedSource.safeParse({ path: "a", keep });
  return error?.issues.map((issue) => JSON.stringify(issue)).join(" ") ?? "";
};

Deno.test("a column that is kept has no name that decides how a row is read", () => {
  for (const name of ["prompt", "answer", "messages", "id"]) {
    match(problem({ [name]: "x" }), /keep/);
  }
  match(problem({ "a b": "x" }), /must be a plain column name/);
  strictEqual(problem({ level: "level", images: "image" }), "");
});

Deno.test("a source's settings have a preparation's facts there, and their own before", () => {
  deepStrictEqual(declaredFacts(ReadSource.shape.path), PREPARED);
  strictEqual(declaredFacts(ReadSource.shape.format).fork, PREPARED.fork);
  strictEqual(declaredFacts(SourceConfig.shape.format).rows, true);
  strictEqual(ReadSource.shape.format.description, SourceConfig.shape.format.description);
});
