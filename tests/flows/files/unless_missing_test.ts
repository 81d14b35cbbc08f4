import { strictEqual, throws } from "node:assert/strict";
import { unlessMissing } from "../../../flows/files/unless_missing.ts";

Deno.test("unlessMissing() lets pass that nothing is there", () => {
  strictEqual(unlessMissing(new Deno.errors.NotFound("gone")), undefined);
  strictEqual(unlessMissing(new Deno.errors.NotADirectory("a file")), undefined);
});

Deno.test("unlessMissing() throws any other error again", () => {
  for (const error of [new Deno.errors.PermissionDenied("closed"), new TypeError("wrong")]) {
    throws(() => unlessMissing(error), (thrown) => thrown === error);
  }
});
