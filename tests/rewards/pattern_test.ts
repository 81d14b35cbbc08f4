import { match, strictEqual } from "node:assert/strict";
import { captureGroups, rePattern } from "../../rewards/pattern.ts";

Deno.test("a pattern is one of RE2, bounded in length and in program", () => {
  const problem = (text: string) => rePattern.safeParse(text).error?.issues[0]?.message ?? null;
  strictEqual(problem("(?s)<a>.*</a>"), null);
  match(problem("(?=a)")!, /RE2, which has no lookaround/);
  match(problem("(a)\\1")!, /RE2, which has no lookaround and no backreferences/);
  match(problem("(")!, /must be a regular expression/);
  match(problem("((a{30}){30}){30}")!, /its repetitions are too large|invalid repeat/);
  match(problem("a".repeat(1_001))!, /1000/);
});

Deno.test("captureGroups() counts a pattern's groups; what is no pattern has none", () => {
  strictEqual(captureGroups("a"), 0);
  strictEqual(captureGroups("(?:a)(b)(c)"), 2);
  strictEqual(captureGroups("("), 0);
});
