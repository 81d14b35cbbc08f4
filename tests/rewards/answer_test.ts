import { ok, strictEqual } from "node:assert/strict";
import { answerReader, RewardConfig, REWARDS } from "../../rewards/mod.ts";

const reader = (config: object) => answerReader(RewardConfig.parse(config));

Deno.test("answerReader() spells answers as the reward compares them", () => {
  const number = reader({ name: "gsm8k" })!;
  strictEqual(number("so #### 1,042"), number("#### $1042.0"));
  strictEqual(number("1042"), null);
  strictEqual(
    reader({ name: "gsm8k", fallback: "last_number" })!("it is 1042"),
    number("####1042"),
  );
  strictEqual(reader({ name: "exact_match", ignore_case: true })!(" Ja\n"), "ja");
});

Deno.test("an empty answer is no answer, of any reward that reads answers", () => {
  const bare = Object.keys(REWARDS).flatMap((name) => {
    const config = RewardConfig.safeParse({ name });
    return config.success ? [config.data] : [];
  });
  const readers = [...bare, RewardConfig.parse({ name: "exact_match", trim: false })]
    .flatMap((config) => answerReader(config) ?? []);
  ok(readers.length >= 3);
  for (const read of readers) {
    for (const empty of ["", " \n", "\\boxed{}", "####"]) {
      ok(read(empty)?.trim() !== "", empty);
    }
    strictEqual(read(""), null);
    strictEqual(read(" \n"), null);
  }
});

Deno.test("answerReader() is null for rewards without answers", () => {
  strictEqual(reader({ name: "length" }), null);
  strictEqual(reader({ name: "python", source: "/x/my.py:judge" }), null);
});
