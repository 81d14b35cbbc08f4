import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { format, RewardConfig } from "../../rewards/mod.ts";

function score(completion: string, settings: Record<string, unknown>): unknown {
  return format.score({ completion }, format.config.parse(settings));
}

function problemOf(settings: Record<string, unknown>): string {
  return RewardConfig.safeParse({ name: "format", ...settings }).error?.issues[0]?.message ?? "";
}

const TAGS = { tags: ["think", "answer"] };

Deno.test("format.score() is 1 if each tag is there once, in order, without text outside", () => {
  const right = "<think>a < b</think>\n<answer>4</answer>\n";
  deepStrictEqual(
    [
      score(right, TAGS),
      score(`so ${right}`, TAGS),
      score(`so ${right}`, { ...TAGS, text_outside: true }),
      score("<answer>4</answer><think>a</think>", TAGS),
      score("<think>a</think><answer>4", TAGS),
      score(`${right}<answer>5</answer>`, { ...TAGS, text_outside: true }),
      score("<think>a<answer>4</answer></think>", TAGS),
      score("a</think><answer>4</answer>", { ...TAGS, opened: true }),
      score("a</think><answer>4</answer>", TAGS),
      score("", TAGS),
    ],
    [1, 0, 1, 0, 0, 0, 0, 1, 0, 0],
  );
});

Deno.test("format.score() matches a pattern with the whole completion", () => {
  const pattern = "(?s)<think>.*?</think>\\s*\\\\boxed\\{\\d+\\}";
  deepStrictEqual(
    ["<think>\n</think> \\boxed{4}", "<think></think>", "x<think></think>\\boxed{4}"]
      .map((completion) => score(completion, { pattern })),
    [1, 0, 0],
  );
  strictEqual(score("a".repeat(65_537), { pattern: "a*" }), 0);
});

Deno.test("format takes time linear in the completion, whatever the pattern", () => {
  const hostile = ["(a+)+b", "(a|a)*b", "(?s)(.*a){20}b", "(a?){60}a{60}"];
  for (const pattern of hostile) strictEqual(score("a".repeat(65_536), { pattern }), 0, pattern);
});

Deno.test("format.score() is 0 or 1 for any text", () => {
  const part = fc.constantFrom("<think>", "</think>", "<answer>", "</answer>", "<", ">", "a", "\n");
  fc.assert(fc.property(fc.array(part), fc.boolean(), (parts, text_outside) => {
    const scored = score(parts.join(""), { ...TAGS, text_outside });
    const counted = ["<think>", "</think>", "<answer>", "</answer>"]
      .every((tag) => parts.filter((one) => one === tag).length === 1);
    if (scored === 1) strictEqual(counted, true);
    else strictEqual(scored, 0);
  }));
});

Deno.test("RewardConfig refuses a format without a form, with two, or with a bad pattern", () => {
  strictEqual(problemOf({}), "needs either `tags` or `pattern`");
  strictEqual(problemOf({ ...TAGS, pattern: "a" }), "needs either `tags` or `pattern`");
  match(problemOf({ pattern: "(?=a)" }), /of RE2, which has no lookaround.*`\(\?=`/);
  match(problemOf({ pattern: "((a{900}){1}){1}".repeat(9) }), /repetitions are too large/);
  match(problemOf({ tags: ["a b"] }), /must be a tag's name/);
  strictEqual(problemOf(TAGS), "");
});
