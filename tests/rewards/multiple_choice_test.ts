import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import fc from "fast-check";
import { multipleChoice } from "../../rewards/mod.ts";

type Row = { answer?: string; [column: string]: unknown };

function score(completion: string, row: Row = { answer: "B" }, settings = {}): unknown {
  return multipleChoice.score({ completion, row }, multipleChoice.config.parse(settings));
}

const CHOSEN_B = [
  "B",
  " (b).\n",
  "**B**",
  "B) Paris",
  "(B) Paris, because it is the capital.",
  "Answer: B",
  "ANSWER: $B$",
  "**Answer:** B",
  "**Answer: B**",
  "The answer is (B).",
  "the correct answer is **B**",
  "The answer is option B.",
  "So the final answer is: B",
  "<answer>B</answer>",
  "<answer> b </answer>",
  "so \\boxed{B}",
  "so \\boxed{\\text{B}}",
  "\\boxed{(B)}",
  "Answer: A. No, wait. Answer: B",
  "The answer is a city. Answer: B",
  "Answer: B, as Paris is the capital.",
];
const NOT_CHOSEN_B = [
  "",
  "A",
  "Answer: A",
  "Answer: A or B",
  "Answer: B or C",
  "The answer is B and C",
  "Answer: B. No, wait. Answer: C",
  "The answer is Berlin",
  "I think B is nice",
  "\\boxed{B, C}",
  "Answer: Bé",
];

Deno.test("multipleChoice.score() reads the last marked letter", () => {
  for (const completion of CHOSEN_B) strictEqual(score(completion), 1, completion);
  for (const completion of NOT_CHOSEN_B) strictEqual(score(completion), 0, completion);
  strictEqual(score("I choose B, finally", undefined, { fallback: "last_letter" }), 1);
});

Deno.test("multipleChoice.score() finds the answer by letter, index or text of an option", () => {
  const choices = ["Berlin", "Paris", "Rome"];
  const options = "choices";
  deepStrictEqual(
    [
      score("B", { answer: "1", choices }, { options, answer_is: "index" }),
      score("B", { answer: "Paris", choices }, { options, answer_is: "text" }),
      score("paris", { answer: "(B)", choices }, { options }),
      score("Rome", { answer: "B", choices }, { options }),
      score("Answer: D. Answer: Paris", { answer: "B", choices }, { options }),
    ],
    [1, 1, 1, 0, 0],
  );
});

Deno.test("multipleChoice.check() says what a row lacks", () => {
  const check = (row: Row, settings = {}) => () =>
    multipleChoice.check!(row, multipleChoice.config.parse(settings));
  const choices = ["x", "y"];
  throws(check({}), /the row has no answer/);
  throws(check({ answer: "Paris" }), /not the letter of an option: "Paris"/);
  throws(check({ answer: "C", choices }, { options: "choices" }), /not the letter of an option/);
  throws(check({ answer: "2", choices }, { options: "choices", answer_is: "index" }), /index/);
  throws(check({ answer: "z", choices }, { options: "choices", answer_is: "text" }), /none of its/);
  throws(
    check({ answer: "A" }, { options: "choices" }),
    /'choices' is not a list of 2 to 26 texts/,
  );
  throws(check({ answer: "x" }, { answer_is: "text" }), /needs `options`/);
  strictEqual(score("A", {}), null);
});

Deno.test("multipleChoice.score() is total and takes linear time", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => {
    strictEqual([0, 1].includes(score(text) as number), true);
  }));
  const parts = [
    "Answer: ",
    "answer is",
    "answer choice is",
    "\\boxed{",
    "<answer>",
    "((",
    " ",
    "A ",
  ];
  for (const part of parts) {
    for (const fallback of ["none", "last_letter"]) {
      score(part.repeat(2 ** 20 / part.length), undefined, { fallback });
    }
  }
});
