import { deepStrictEqual } from "node:assert/strict";
import { sourceLabel } from "../../../data/mod.ts";

Deno.test("sourceLabel() is the file's name, or the data set's at every commit", () => {
  const commit = "c1899de289a04d12100db370d81485cdf75e47ca";
  const hub = ["", "@v2", `@main@${commit}?subset=a&split=test`, "/data/x.csv"];
  deepStrictEqual(hub.map((end) => sourceLabel(`hf://datasets/owner/gsm8k${end}`)), [
    ...hub.map(() => "gsm8k"),
  ]);
  deepStrictEqual(["/a/test.jsonl", "b/rows", "a.b.csv", "hf://rows"].map(sourceLabel), [
    "test",
    "rows",
    "a.b",
    "rows", // Not a name of the hub, which is said elsewhere.
  ]);
});
