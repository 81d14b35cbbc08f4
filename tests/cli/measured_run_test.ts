import { deepStrictEqual, throws } from "node:assert/strict";
import { chosenMetrics } from "../../cli/measured_run.ts";

const run = { id: "a", known: ["eval/x/right", "eval/y/right", "loss"] };

Deno.test("chosenMetrics() are in the order of the patterns, each once; * stands for any text", () => {
  deepStrictEqual(chosenMetrics(["loss", "eval/*/right", "*"], run), [
    "loss",
    "eval/x/right",
    "eval/y/right",
  ]);
});

Deno.test("chosenMetrics() takes a name before the pattern that it looks like", () => {
  deepStrictEqual(chosenMetrics(["a*b"], { id: "a", known: ["a*b", "axb"] }), ["a*b"]);
});

Deno.test("chosenMetrics() says what is near a name that the run lacks, and that a run has none", () => {
  throws(
    () => chosenMetrics(["los"], run),
    /Cannot show 'los' because run 'a' has no such metric \(did you mean loss\?\)/,
  );
  throws(() => chosenMetrics(["l.ss"], run), /no such metric/);
  throws(() => chosenMetrics(["loss"], { ...run, known: [] }), /because run 'a' has no metric yet/);
});
