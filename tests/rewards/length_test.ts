import { strictEqual } from "node:assert/strict";
import { length } from "../../rewards/mod.ts";

Deno.test("length.score() is a share of max in code points or tokens", () => {
  const score = (options: object) =>
    length.score({ completion: "é👍abc", tokens: 2 }, length.config.parse(options));
  strictEqual(score({ max: 20 }), 0.75);
  strictEqual(score({ max: 20, prefer: "long" }), 0.25);
  strictEqual(score({ max: 4, unit: "tokens" }), 0.5);
  strictEqual(score({ max: 3 }), 0);
});
