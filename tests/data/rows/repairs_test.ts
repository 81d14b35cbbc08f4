import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { existsSync } from "node:fs";
import {
  repaired,
  repairFor,
  Repairs,
  repairsOf,
  repairsProblem,
} from "../../../data/rows/repairs.ts";

const REPAIRS: Exclude<Repairs, string> = [
  { where: { id: 7, "meta.split": "train" }, set: { answer: "12" } },
  { where: { question: "1+1" }, set: { question: "1 + 1 = ?", answer: "2" } },
];

Deno.test("repaired() sets the fields of the rows that a repair is for, and leaves others alone", () => {
  const row = { id: 7, question: "q", answer: "11", meta: { split: "train" } };
  deepStrictEqual(repaired(row, REPAIRS), { ...row, answer: "12" });
  const other = { ...row, meta: { split: "test" } };
  strictEqual(repaired(other, REPAIRS), other);
  strictEqual(repaired(row, undefined), row);
  deepStrictEqual(repaired({ question: "1+1" }, REPAIRS), { question: "1 + 1 = ?", answer: "2" });
});

Deno.test("repairFor() compares whole values of their own type", () => {
  const places = [{ id: "7", meta: { split: "train" } }, { question: "1+1 " }, { question: "1+1" }]
    .map((row) => repairFor(row, REPAIRS));
  deepStrictEqual(places, [-1, -1, 1]);
});

Deno.test("repairsProblem() names a repair of one's own that was for no row", () => {
  strictEqual(repairsProblem(REPAIRS, new Set([0, 1])), null);
  strictEqual(
    repairsProblem(REPAIRS, new Set([0])),
    '`repairs.1` is for no row, as none has {"question":"1+1"}; correct or remove it',
  );
});

Deno.test("repairsProblem() of a list that ships needs one row, as it has all splits", () => {
  strictEqual(repairsProblem("gsm8k", new Set([3])), null);
  match(repairsProblem("gsm8k", new Set())!, /none of its rows is one that `repairs: gsm8k`/);
});

Deno.test("Repairs are a list that ships, or rows and what is right", () => {
  const accepted = ["gsm8k", REPAIRS, "gsm", [], [{ where: {}, set: { a: 1 } }], [{
    where: { a: 1 },
    set: {},
  }]].map((value) => Repairs.safeParse(value).success);
  deepStrictEqual(accepted, [true, true, false, false, false, false]);
});

Deno.test("the list of GSM8K computes what it says, each answer once", () => {
  const list = repairsOf("gsm8k");
  strictEqual(new Set(list.map(({ where }) => where.question)).size, list.length);
  for (const { set } of list) {
    const text = set.answer as string;
    const steps = [...text.matchAll(/<<([-+*/.\d]+)=([.\d]+)>>([.\d]*\d)/g)];
    strictEqual(steps.length, text.split("<<").length - 1, text);
    for (const [step, formula, result, again] of steps) {
      const value = new Function(`return ${formula}`)() as number;
      strictEqual(Math.abs(value - Number(result)) < 1e-9 && result === again, true, step);
    }
    match(
      text,
      new RegExp(`[^\\d.]${text.split("#### ")[1]!.replace(".", "\\.")}[^\\d].*#### `, "s"),
    );
  }
});

const shared = Deno.env.get("HOLDFAST_SHARED") ??
  new URL("../../../../shared", import.meta.url).pathname;
const splits = ["train", "test"].map((split) => `${shared}/data/gsm8k/${split}.jsonl`);
const isThere = splits.every((path) => existsSync(path));

Deno.test({
  name: "each repair of GSM8K is for one of its problems, with another answer or in other words",
  ignore: !isThere,
  fn() {
    const list = repairsOf("gsm8k");
    const counts = splits.map((path) => {
      const rows = Deno.readTextFileSync(path).trim().split("\n").map((line) => JSON.parse(line));
      const wrong = rows.filter((row) => repairFor(row, "gsm8k") >= 0);
      for (const row of wrong) {
        const whole = repaired(row, "gsm8k");
        const [before, after] = [row, whole].map(({ answer }) =>
          (answer as string).split("#### ")[1]
        );
        // A question in other words asks for the answer that GSM8K meant.
        strictEqual(before === after, whole.question !== row.question, row.question);
      }
      return new Set(wrong.map((row) => repairFor(row, "gsm8k"))).size;
    });
    deepStrictEqual(counts, [12, 10]);
    strictEqual(list.length, 22);
  },
});
