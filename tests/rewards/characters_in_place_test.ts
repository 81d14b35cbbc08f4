import { deepStrictEqual, throws } from "node:assert/strict";
import { charactersInPlace } from "../../rewards/mod.ts";

Deno.test("charactersInPlace.score() is the share of characters in place", () => {
  const score = (completion: string, answer = "12345") =>
    charactersInPlace.score({ completion, row: { answer } }, {});
  deepStrictEqual([score("12345"), score(" 12354\n"), score("123"), score("12345x")], [
    1,
    0.6,
    0.6,
    5 / 6,
  ]);
  deepStrictEqual([score(""), score("x"), score("no idea at all"), score("512345")], [0, 0, 0, 0]);
  deepStrictEqual([score("é👍", "é👍"), score("👍é", "👎é"), score("", "")], [1, 0.5, 0]);
  throws(() => charactersInPlace.score({ completion: "a", row: {} }, {}), /the row has no answer/);
});
