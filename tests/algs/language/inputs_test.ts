import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { INPUTS } from "../../../algs/mod.ts";
import { liveModel } from "../../../algs/language/inputs.ts";

Deno.test("liveModel() is the model that computes an input while it is trained", () => {
  const live = Object.keys(INPUTS).filter((name) => liveModel(name) !== null);
  deepStrictEqual(live, ["logp", "entropy", "values", "score"]);
  deepStrictEqual(live.map(liveModel), ["policy", "policy", "value", "score"]);
});

Deno.test("liveModel() is null for a coefficient and for what is no input", () => {
  strictEqual(liveModel("coef.kl"), null);
  strictEqual(liveModel("logps"), null);
  strictEqual(liveModel("toString"), null);
});
