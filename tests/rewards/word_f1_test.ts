import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { REWARDS } from "../../rewards/mod.ts";

const { word_f1: wordF1 } = REWARDS;

function score(completion: string, row: Record<string, unknown>, options = {}): unknown {
  return wordF1.score({ completion, row }, wordF1.config.parse(options));
}

Deno.test("wordF1.score() is the F1 of shared words, each as often as both have it", () => {
  const row = { answer: "cats and dogs and birds" };
  strictEqual(score("cats and dogs and birds", row), 1);
  strictEqual(score("fish", row), 0);
  strictEqual(score("dogs cats", row), 2 * 2 / (2 + 5));
  strictEqual(score("and and and and", row), 2 * 2 / (4 + 5));
});

Deno.test("wordF1.score() ignores case, punctuation and articles, unless it is told not to", () => {
  const row = { answer: "The Beatles" };
  strictEqual(score("“Beatles”, an 'a' the!", row), 1);
  strictEqual(score("theatre", row), 0);
  strictEqual(score("The beatles", row, { normalise: false }), 0.5);
  strictEqual(score("$5", { answer: "5" }), 1);
});

Deno.test("wordF1.score() takes the nearest of several answers", () => {
  const options = { answers: "golden_answers" };
  const row = { golden_answers: ["New York City", "NYC"] };
  deepStrictEqual(
    ["NYC", "new york", "Boston"].map((completion) => score(completion, row, options)),
    [1, 0.8, 0],
  );
});

Deno.test("wordF1.score() compares texts as they stand if normalising leaves nothing of one", () => {
  const scores = (answer: string, completions: string[]) =>
    completions.map((completion) => score(completion, { answer }));
  deepStrictEqual(scores("A", ["a", "", "the", "vitamin a"]), [1, 0, 0, 2 / 3]);
  deepStrictEqual(scores("€", ["€", "$", "€5"]), [1, 0, 0]);
  deepStrictEqual(scores("x", ["...", ""]), [0, 0]);
  deepStrictEqual(scores("", ["", "x"]), [1, 0]);
});

Deno.test("wordF1 does not grade a row without an answer, and its check refuses such a row", () => {
  strictEqual(score("x", {}), null);
  const check = (row: Record<string, unknown>, options = {}) => () =>
    wordF1.check!(row, wordF1.config.parse(options));
  throws(check({}), /word_f1 because the row has no answer: add an `answer`/);
  for (const wrong of [undefined, [], "x", [1]]) {
    throws(check({ all: wrong }, { answers: "all" }), /row's 'all' is not a list of texts/);
  }
  check({ all: ["x"] }, { answers: "all" })();
});

Deno.test("wordF1's answer is one spelling for completions with the same words", () => {
  const settings = wordF1.config.parse({});
  strictEqual(wordF1.answer!(" The  Eiffel Tower!", settings), "eiffel tower");
  deepStrictEqual([wordF1.answer!("A", settings), wordF1.answer!(" ", settings)], ["a", null]);
});
