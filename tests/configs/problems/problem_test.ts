import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ConfigError } from "../../../configs/mod.ts";

const problems = [
  { where: "run.yaml:2:1", path: "sed", message: "unknown key", position: null },
  { where: "override a.b", path: "a.b", message: "missing", position: null },
  { where: "run.yaml", path: "", message: "there is no such file", position: null },
];

Deno.test("ConfigError has a line for each problem, with each path once", () => {
  strictEqual(
    new ConfigError(problems).message,
    "run.yaml:2:1 sed: unknown key\noverride a.b: missing\nrun.yaml: there is no such file",
  );
});

Deno.test("ConfigError is never retried, and its JSON has the problems", () => {
  const error = new ConfigError(problems);
  deepStrictEqual(error.toJSON(), {
    code: "bad_config",
    retryable: false,
    message: error.message,
    facts: { problems },
  });
});
