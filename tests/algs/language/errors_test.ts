import { deepStrictEqual, ok } from "node:assert/strict";
import { LossError } from "../../../algs/mod.ts";

Deno.test("LossError is the user's, names its rule, and is never worth a retry", () => {
  const error = new LossError(2, "Cannot use it because of rule 2");
  ok(error instanceof Error);
  deepStrictEqual([error.name, error.cause_kind, error.retryable], [
    "LossError",
    "user_code",
    false,
  ]);
  deepStrictEqual(JSON.parse(JSON.stringify(error)), {
    code: "loss_rule",
    retryable: false,
    message: "Cannot use it because of rule 2",
    facts: { rule: 2 },
  });
});
