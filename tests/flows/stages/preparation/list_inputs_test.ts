import { deepStrictEqual, match } from "node:assert/strict";
import { shortNames } from "../../../../flows/stages/preparation/list_inputs.ts";
import { Preparing } from "./preparing.ts";

Deno.test("shortNames() has as many directories as tell paths apart", () => {
  deepStrictEqual(
    shortNames(["/a/x.jsonl", "/b/x.jsonl", "/b/y.jsonl", "/b/y.jsonl"]),
    "a/x.jsonl b/x.jsonl y.jsonl y.jsonl".split(" "),
  );
  deepStrictEqual(shortNames(["/x", "/a/x"]), ["x", "a/x"]);
});

Deno.test("inputs that name no file end the run with a sentence", async () => {
  const none = await Preparing.of({}, { inputs: [{ path: "DIR/none-*.jsonl" }] });
  match(await none.failure(), /none-\*\.jsonl: the pattern matches no file/);
});
