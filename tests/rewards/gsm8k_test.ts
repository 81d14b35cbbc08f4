import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import fc from "fast-check";
import { gsm8k } from "../../rewards/mod.ts";
import { ANSWER_CHARACTERS_MAX, spellNumber } from "../../rewards/numbers.ts";

type Fallback = "none" | "last_number";
const says = (completion: string, answer: string, fallback: Fallback = "none") =>
  gsm8k.score({ completion, row: { answer } }, { fallback });

/**
 * What follows the mark, and the one number that it is; null: it is no answer, whatever the row's
 * is.
 */
const MARKED: [string, string | null][] = [
  ["#### 12", "12"],
  ["####12", "12"],
  ["####\n12", "12"],
  ["#### 12.", "12"],
  ["#### 12.0", "12"],
  ["#### 12.50", "12.5"],
  ["#### .5", "0.5"],
  ["#### 007", "7"],
  ["#### 1,042", "1042"],
  ["#### 1,450,000", "1450000"],
  ["#### $12.50 in all", "12.5"],
  ["#### \\$12", "12"],
  ["#### 12 apples", "12"],
  ["#### 12kg", "12"],
  ["#### 12 m²", "12"],
  ["#### 50%", "50"],
  ["#### +12", "12"],
  ["#### -12", "-12"],
  ["#### \u221212", "-12"],
  ["#### -$12", "-12"],
  ["#### $-12", "-12"],
  ["#### -0", "0"],
  ["#### 3\nno, wait\n#### 4", "4"],
  ["#### 4\n#### Checked", "4"],
  ["#### 4\nThat took 3 steps.", "4"],
  ["#### 1/2", null],
  ["#### 12 / 4", null],
  ["#### 1e3", null],
  ["#### 1.5e3", null],
  ["#### 2^10", null],
  ["#### 2x3", null],
  ["#### 2 * 3", null],
  ["#### 12-15", null],
  ["#### 12 - 15", null],
  ["#### 12\u201315", null],
  ["#### 12:30", null],
  ["#### 12 or 15", null],
  ["#### 12, 15", null],
  ["#### 12 (= 3 * 4)", null],
  ["#### 1 234", null],
  ["#### 1\u00a0234", null],
  ["#### 7,0,0", null],
  ["#### 70,0", null],
  ["#### 1.2.3", null],
  ["#### 12½", null],
  ["#### 12 ½", null],
  ["#### 12²", null],
  ["#### --12", null],
  ["#### +-12", null],
  ["#### 12 or １５", null],
  ["#### 4\n#### 5 or 6", null],
  ["#### 12k", null],
  ["#### 12 K.", null], // Kelvin, perhaps.
  ["#### 12 k", null],
  ["#### $12$k", null],
  ["#### 12 (million)", null],
  ["#### 12 *million*", null],
  ["#### 12\\,\\mathrm{million}", null],
  ["#### 12 Million", null],
  ["#### 5 M", null],
  ["#### 5 m", "5"],
  ["#### 5 lakh", null],
  ["#### 5 crores", null],
  ["#### 12 T-shirts", "12"],
  ["#### 12 million-dollar homes", "12"],
  ["#### 12. Thousands came", "12"],
  ["#### 12\nThousands came", "12"],
  ["#### $12K", null],
  ["#### 12M", null],
  ["#### 12m", "12"],
  ["#### 12 million", null],
  ["#### 12-thousand", null],
  ["#### 12\\text{ billion}", null],
  ["#### 2 dozen eggs", null],
  ["#### 12 kids", "12"],
  ["#### 12 millions of eggs", null],
  ["#### \u00b112", null],
  ["#### +/-12", null],
  ["#### \\pm 12", null],
  ["#### \u226412", null],
  ["#### 5-", null],
  ["#### 5/", null],
  ["#### 5 -", null],
  ["#### $5-$", null],
  ["#### 5- done", "5"],
  ["#### 5-gallon buckets", "5"],
  ["#### 5 - that is all", "5"],
  ["#### 5**", "5"],
  ["#### ,123", null],
  ["#### 7\n#### ,123", null],
];

/** Without a mark, where the last number may stand for the answer. */
const UNMARKED: [string, string | null][] = [
  ["first 3, so it is 4.", "4"],
  ["so,12", "12"],
  ["so...5", "5"],
  ["it is .5", "0.5"],
  ["it is 1,042.", "1042"],
  ["it is -7", "-7"],
  ["it is \u22127", "-7"],
  ["it is -$7", "-7"],
  ["it is $-7", "-7"],
  ["the gap-7", "7"],
  ["48/2=24", "24"],
  ["5-7=-2", "-2"],
  ["<<48+24=72>>72", "72"],
  ["**12**", "12"],
  ["Answer:12", "12"],
  ["USD12", "12"],
  ["12 or 15", "15"],
  ["\\boxed{12}", "12"],
  ["\\boxed{12} after 3 steps", "12"],
  ["\\boxed{ -1,042\\text{ km} }", "-1042"],
  ["\\boxed{3}, no: \\boxed{4}", "4"],
  ["\\boxed{\\frac{1}{2}}", null],
  ["\\boxed{1/2}", null],
  ["\\boxed{12, 15}", null],
  ["#### 1/2", null],
  ["1/2", null],
  ["1e3", null],
  ["1.5e3", null],
  ["2^10", null],
  ["2x3", null],
  ["from 12-15", null],
  ["from 12\u201315", null],
  ["at 12:30", null],
  ["5-$7", null],
  ["1 234", null],
  ["1\u00a0234", null],
  ["7,0,0", null],
  ["1.2.3", null],
  ["12½", null],
  ["12²", null],
  ["none", null],
  ["", null],
  ["it is 12k", null],
  ["it is 12 million.", null],
  ["\\boxed{12\\text{ million}}", null],
  ["\\boxed{12k}", null],
  ["it is 12 kids", "12"],
  ["it is \u00b112", null],
  ["it is +/-12", null],
  ["it is +/- 12", null],
  ["it is \\pm 12", null],
  ["\\boxed{\\pm12}", null],
  ["\\boxed{\u00b112}", null],
  ["it is \u226512", null],
  ["it is 5-", null],
  ["it is 5/", null],
  ["it is 5 - done", "5"],
  ["it is 5- done", "5"],
  ["it is **5**-", null],
  ["it is **12** k", null],
  ["it is 12 (million).", null],
  ["it is 5 lakh", null],
  ["it is 12.\nThousands came", "12"],
  ["it is 5\n- done", "5"],
  ["it is ,123", null],
  [",123", null],
];

/** Every number that a form could be taken for. */
const ANSWERS = [
  "0",
  "0.5",
  "1",
  "2",
  "3",
  "4",
  "5",
  "6",
  "7",
  "10",
  "12",
  "-12",
  "12.5",
  "15",
  "-15",
  "-2",
  "-7",
  "24",
  "30",
  "50",
  "70",
  "72",
  "100",
  "123",
  "144",
  "234",
  "500",
  "700",
  "1000",
  "1024",
  "1042",
  "-1042",
  "1230",
  "1234",
  "1500",
  "1450000",
];

Deno.test("gsm8k.score() takes a form for its one number and for no other", () => {
  const taken = (completion: string, fallback: Fallback) =>
    ANSWERS.filter((answer) => says(completion, answer, fallback) === 1);
  for (const [form, number] of MARKED) {
    const wanted = number === null ? [] : [number];
    deepStrictEqual(taken(`First 3.\n${form}`, "none"), wanted, form);
    deepStrictEqual(taken(`First 3.\n${form}`, "last_number"), wanted, form);
  }
  for (const [form, number] of UNMARKED) {
    deepStrictEqual(taken(form, "last_number"), number === null ? [] : [number], form);
    deepStrictEqual(taken(form, "none"), [], form);
  }
});

Deno.test("gsm8k.score() looks at the last 65,536 characters of a completion", () => {
  strictEqual(ANSWER_CHARACTERS_MAX, 65_536);
  strictEqual(says(`#### 12\n${" ".repeat(ANSWER_CHARACTERS_MAX - 8)}`, "12"), 1);
  strictEqual(says(`#### 12\n${" ".repeat(ANSWER_CHARACTERS_MAX - 7)}`, "12"), 0);
});

Deno.test("gsm8k.score() keeps all digits of a long integer", () => {
  strictEqual(says("#### 9007199254740993", "9007199254740992"), 0);
  strictEqual(says("#### 9,007,199,254,740,993", "9007199254740993"), 1);
});

Deno.test("gsm8k.score() throws when the row's answer is not a number", () => {
  throws(() => says("#### 4", "four"), /RangeError: Cannot score with gsm8k .* it is "four"/);
  throws(() => says("#### 4", "7,0,0"), RangeError);
  // Nothing to compare with.
  strictEqual(gsm8k.score({ completion: "#### 4", row: {} }, { fallback: "none" }), null);
});

/** OpenAI's own rule, grade-school-math `dataset.py`: what it reads, as text. */
function openAi(completion: string): string | undefined {
  return completion.match(/#### (-?[0-9.,]+)/)?.[1]?.trim().replaceAll(",", "");
}

const PIECES = [
  "#### ",
  "####",
  "\\boxed{",
  "}",
  " ",
  "\n",
  "-",
  "\u2212",
  "$",
  ",",
  ".",
  "/",
  ":",
  "e",
  "x",
  "or",
  "½",
  "²",
];
const text = fc.array(fc.oneof(fc.constantFrom(...PIECES), fc.nat({ max: 1200 }).map(String)), {
  maxLength: 12,
})
  .map((parts) => parts.join(""));

Deno.test("gsm8k.score() of one mark agrees with OpenAI's rule", () => {
  fc.assert(
    fc.property(text, fc.nat({ max: 1200 }), (completion, answer) => {
      const isRight = says(completion, String(answer)) === 1;
      const read = completion.split("####").length === 2 ? openAi(completion) : undefined;
      if (isRight && read !== undefined) strictEqual(spellNumber(read), String(answer), completion);
    }),
    { numRuns: 20_000, seed: 7 },
  );
});

Deno.test("gsm8k.score() takes every spelling of a number that stands alone", () => {
  const number = fc.record({
    sign: fc.constantFrom("", "-", "\u2212"),
    whole: fc.oneof(fc.nat({ max: 999 }), fc.nat()),
    cents: fc.option(fc.nat({ max: 99 })),
    dollar: fc.boolean(),
    commas: fc.boolean(),
  });
  const words = fc.constantFrom("", ".", " apples", "%", " in all.");
  fc.assert(
    fc.property(number, words, fc.nat(), ({ sign, whole, cents, dollar, commas }, after, other) => {
      const size = commas ? whole.toLocaleString("en-US") : String(whole);
      const decimals = cents === null ? "" : `.${String(cents).padStart(2, "0")}`;
      const spelled = `${sign}${dollar ? "$" : ""}${size}${decimals}`;
      const wanted = spellNumber(`${sign === "" ? "" : "-"}${whole}${decimals}`)!;
      strictEqual(says(`2 + 2\n#### ${spelled}${after}\nDone in 3 steps`, wanted), 1, spelled);
      strictEqual(says(`2 + 2\n#### ${spelled}${after} ${other}\nDone`, wanted), 0, spelled);
      strictEqual(says(`so ${spelled}`, wanted, "last_number"), 1, spelled);
      strictEqual(says(`so \\boxed{${spelled}} in ${other}`, wanted, "last_number"), 1, spelled);
    }),
    { numRuns: 2_000, seed: 7 },
  );
});

Deno.test("gsm8k.score() takes linear time in the length of a text", () => {
  const runs = [
    "0",
    "1,",
    "#",
    "####",
    "#### ",
    "#### 1",
    "####\n",
    " ",
    "1 ",
    "-",
    ".",
    ",,",
    "\\boxed{",
    "\\boxed{1",
    "1/",
    "e1",
  ];
  // All of it is looked at; its end is.
  for (const size of [ANSWER_CHARACTERS_MAX - 100, 8_000_000]) {
    for (const run of runs) {
      const long = run.repeat(size / run.length);
      for (
        const completion of [long, `#### ${long}`, `#### 0.${long}1`, `\\boxed{${long}`, `${long}x`]
      ) {
        for (const fallback of ["none", "last_number"] as const) says(completion, "7", fallback);
      }
      for (const answer of [long, `0.${long}1`, `-$${long}`]) spellNumber(answer);
    }
  }
});

const shared = Deno.env.get("HOLDFAST_SHARED") ??
  new URL("../../../shared", import.meta.url).pathname;
const gold = ["train", "test"].map((split) => `${shared}/data/gsm8k/${split}.jsonl`);
const isThere = gold.every((path) => {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
});

Deno.test({
  name:
    "gsm8k.score() agrees with OpenAI's rule on every gold answer of GSM8K, marked or as the last number",
  ignore: !isThere,
  fn() {
    const solutions = gold.flatMap((path) => Deno.readTextFileSync(path).trim().split("\n"))
      .map((line): string => JSON.parse(line).answer);
    strictEqual(solutions.length, 8792);
    for (const [i, solution] of solutions.entries()) {
      const wanted = openAi(solution)!;
      const other: string = openAi(solutions[(i + 1) % solutions.length]!)!;
      strictEqual(says(solution, wanted), 1, solution);
      strictEqual(says(solution, other), wanted === other ? 1 : 0, solution);
      strictEqual(
        says(solution.replace("####", "The answer is"), wanted, "last_number"),
        1,
        solution,
      );
    }
  },
});
