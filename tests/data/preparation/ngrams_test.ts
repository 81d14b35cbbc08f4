import { deepStrictEqual, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { NgramIndex, wordsOf } from "../../../data/preparation/ngrams.ts";

Deno.test("wordsOf() has letters and digits of any script in lower case", () => {
  deepStrictEqual(
    wordsOf("Janet’s $2 ducks,\n\\frac{1}{2} Über ２"),
    "janet s 2 ducks frac 1 2 über 2".split(" "),
  );
});

Deno.test("NgramIndex finds a sequence anywhere in a text, and says whose it is", () => {
  const index = new NgramIndex(3);
  index.add("first", "One two three, four");
  index.add("second", "two three four five");
  deepStrictEqual(index.find("so: two  THREE four!"), { set: "first", ngram: "two three four" });
  deepStrictEqual(index.find("three four five"), { set: "second", ngram: "three four five" });
  strictEqual(index.find("one two four three"), null);
  strictEqual(index.find(""), null);
});

Deno.test("NgramIndex finds a text with fewer words only in a text of exactly its words", () => {
  const index = new NgramIndex(3);
  index.add("short", "2 + 2");
  deepStrictEqual(index.find("2+2?"), { set: "short", ngram: "2 2" });
  strictEqual(index.find("what is 2+2?"), null);
  index.add("none", "?!");
  strictEqual(index.find("!"), null);
});

Deno.test("NgramIndex finds exactly the texts that share words, also read again", () => {
  const text = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 8 });
  fc.assert(
    fc.property(
      fc.array(text, { maxLength: 3 }),
      text,
      fc.integer({ min: 1, max: 4 }),
      (sets, row, n) => {
        const index = new NgramIndex(n);
        for (const words of sets) index.add("set", words.join(" "));
        const within = (words: string[]) =>
          words.map((_, i) => words.slice(i, i + n).join(" ")).slice(
            0,
            Math.max(0, words.length - n + 1),
          );
        const shared = within(row).some((ngram) =>
          sets.some((words) => within(words).includes(ngram))
        );
        const same = row.length > 0 && row.length < n &&
          sets.some((words) => words.join(" ") === row.join(" "));
        const again = NgramIndex.read(JSON.parse(JSON.stringify(index.record())));
        for (const one of [index, again]) {
          strictEqual(
            one.find(row.join(" ")) !== null,
            shared || same,
          );
        }
      },
    ),
    { seed: 1 },
  );
});
