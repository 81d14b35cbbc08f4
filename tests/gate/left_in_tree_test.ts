import { match, strictEqual } from "node:assert/strict";
import { leftLine } from "./left_in_tree.ts";

Deno.test("leftLine() names files that appeared, and nothing that was there", () => {
  strictEqual(leftLine(["notes.md"], ["notes.md"]), null);
  strictEqual(leftLine(["notes.md"], []), null);
  match(leftLine(["a"], ["a", "other/card.json"])!, /^FAILED other\/card\.json appeared in the/);
  match(leftLine([], ["a", "b", "c", "d"])!, /^FAILED a, b, c and 1 more appeared/);
});
