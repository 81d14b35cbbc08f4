import { match, strictEqual } from "node:assert/strict";
import { strangersLine } from "./left_in_tree.ts";

Deno.test("leftLine() names files that appeared, and nothing that was there", () => {
  strictEqual(strangersLine(["notes.md"], ["notes.md"]), null);
  strictEqual(strangersLine(["notes.md"], []), null);
  match(
    strangersLine(["a"], ["a", "other/card.json"])!,
    /^FAILED other\/card\.json appeared in the/,
  );
  match(strangersLine([], ["a", "b", "c", "d"])!, /^FAILED a, b, c and 1 more appeared/);
});
