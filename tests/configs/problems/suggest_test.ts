import { strictEqual } from "node:assert/strict";
import { didYouMean, suggestKey } from "../../../configs/problems/suggest.ts";

Deno.test("didYouMean() names the closest name, and none that is far", () => {
  const known = ["rounds", "seed", "model"];
  strictEqual(didYouMean("round", known), " (did you mean rounds?)");
  strictEqual(didYouMean("sede", known), " (did you mean seed?)", "two letters are swapped");
  strictEqual(didYouMean("zzzzzz", known), "");
  strictEqual(didYouMean("round", []), "");
});

Deno.test("didYouMean() allows one difference in a name of three letters", () => {
  strictEqual(didYouMean("lt", ["lr"]), " (did you mean lr?)");
  strictEqual(didYouMean("abc", ["xyc"]), "");
});

Deno.test("suggestKey() prefers a name here, then the same name inside, then elsewhere", () => {
  const paths = ["trainer.optimizer.width", "sampler.width", "trainer.ranks", "depth.max"];
  const suggest = (key: string, here: string[], everywhere = paths) =>
    suggestKey(key, { block: "trainer", here, everywhere });
  strictEqual(suggest("width", ["widths"]), " (did you mean widths?)");
  strictEqual(suggest("width", ["ranks"]), " (did you mean trainer.optimizer.width?)");
  strictEqual(suggest("max", ["ranks"]), " (did you mean depth.max?)");
  strictEqual(suggest("width", ["ranks"], ["a.width", "b.width"]), "", "it could be either");
});
