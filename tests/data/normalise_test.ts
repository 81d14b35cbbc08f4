import { deepStrictEqual, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { normalise, SourceConfig } from "../../data/mod.ts";

const { path: _, ...PLAIN } = SourceConfig.parse({ path: "rows.jsonl" });
const answerOf = (answer: string) => {
  const row = normalise({ question: "q", answer }, PLAIN);
  return { answer: row.answer, completion: row.completion };
};

/** The rule in one expression: right, but quadratic in the white space of a line. */
const RULE = /####\s*(\S[^\n]*?)\s*$/;

Deno.test("normalise() reads what ends an answer after ####, and takes the whole text for the completion", () => {
  deepStrictEqual(answerOf("2+2\n#### 1,042 \n"), { answer: "1,042", completion: "2+2\n#### 1,042 \n" });
  deepStrictEqual(answerOf("no mark"), { answer: "no mark", completion: undefined });
});

Deno.test("normalise() finds the same end of an answer as the rule, whatever stands in the text", () => {
  const pieces = fc.constantFrom("#", "##", "####", " ", "\n", "\r", "\u2028", "\t", "1", "a");
  const text = fc.array(pieces, { maxLength: 14 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(text, (answer) => {
      const ending = answer.match(RULE)?.[1];
      const found = answerOf(answer);
      strictEqual(found.answer, ending ?? answer);
      strictEqual(found.completion, ending === undefined ? undefined : answer);
    }),
    { numRuns: 20_000, seed: 7 },
  );
});

Deno.test("normalise() takes answers of any length: what is quadratic would not end with eight million characters", () => {
  const size = 8_000_000;
  for (const run of ["#", "####", "#### ", "#### a", "a ", " ", "\n", "####\n", "0"]) {
    const long = run.repeat(size / run.length);
    for (const answer of [long, `#### ${long}`, `#### a${long}a`, `${long}\n#### 4`]) answerOf(answer);
  }
});
