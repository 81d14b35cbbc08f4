import { strictEqual } from "node:assert/strict";
import { answerReader, RewardConfig } from "../../rewards/mod.ts";

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

Deno.test("answerReader() is null for rewards without answers", () => {
  strictEqual(reader({ name: "length" }), null);
  strictEqual(reader({ name: "python", source: "/x/my.py:judge" }), null);
});
