import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { EXIT, isBadInput } from "../../cli/exit.ts";
import { BadDataError, InfrastructureError, InvalidInputError } from "../../engine/mod.ts";

Deno.test("EXIT has the codes that scripts rely on", () => {
  deepStrictEqual(EXIT, { done: 0, bad_input: 2, failed: 3, interrupted: 130 });
});

Deno.test("isBadInput() is true of errors that say nothing was started", () => {
  strictEqual(isBadInput(new InvalidInputError("no")), true);
  strictEqual(isBadInput(new BadDataError("no")), true);
  strictEqual(isBadInput(new InfrastructureError("no")), false);
});
