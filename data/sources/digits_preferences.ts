import { createHash } from "node:crypto";
import { z } from "zod";
import { type DigitsSplit, digitsTables, DigitsTask } from "./digits_task.ts";
import { roundKeys } from "./order.ts";
import type { Row } from "../prompt.ts";
import type { RowTable } from "../rows/row_table.ts";

const /** @internal */ digitsPreferencesSchema = z.strictObject({
  name: z.enum(["sort_digits_preferences", "reverse_digits_preferences"]).default(
    "sort_digits_preferences",
  ).describe(
    "The preferred answer: the digits sorted, or reversed. The rejected answer has one of " +
      "six mistakes.",
  ),
  digits: DigitsTask.shape.digits,
});
/** The digits task as preferences: the right answer versus a wrong one. */
export type DigitsPreferences = z.infer<typeof digitsPreferencesSchema>;
/** Schema of {@linkcode DigitsPreferences}. */
export const DigitsPreferences: typeof digitsPreferencesSchema = digitsPreferencesSchema;

/**
 * The training and evaluation problems of the digits task, each with a wrong answer drawn from the
 * seed.
 */
export function digitsPreferenceTables(
  { name, ...split }: DigitsPreferences & Pick<DigitsSplit, "seed" | "eval_problems">,
): { train: RowTable; eval: RowTable } {
  const task = name === "sort_digits_preferences" ? "sort_digits" : "reverse_digits";
  const { train, eval: held } = digitsTables({ ...split, name: task });
  const worse = (table: RowTable): RowTable => ({
    size: table.size,
    rows: async (places) => (await table.rows(places)).map((row) => withMistake(row, split.seed)),
    digest: createHash("sha256").update(JSON.stringify([name, table.digest])).digest("hex"),
  });
  return { train: worse(train), eval: worse(held) };
}

type Mistake = (of: { answer: string; problem: string; random: readonly number[] }) => string;

/**
 * Mistakes typical of a model that has half learned the task. A mistake that cannot apply returns
 * the answer itself.
 */
const MISTAKES: Record<string, Mistake> = {
  swapped: ({ answer, random }) => {
    const i = random[0]! % (answer.length - 1);
    return answer.slice(0, i) + answer[i + 1] + answer[i] + answer.slice(i + 2);
  },
  wrong_digit: ({ answer, random }) => {
    const i = random[0]! % answer.length;
    const other = (Number(answer[i]) + 1 + random[1]! % 9) % 10;
    return answer.slice(0, i) + other + answer.slice(i + 1);
  },
  short: ({ answer, random }) => {
    const i = random[0]! % answer.length;
    return answer.slice(0, i) + answer.slice(i + 1);
  },
  long: ({ answer, random }) => {
    const i = random[0]! % answer.length;
    return answer.slice(0, i) + answer[i] + answer.slice(i);
  },
  copied: ({ problem }) => problem,
  backwards: ({ answer }) => [...answer].reverse().join(""),
};

/**
 * The row with a wrong answer. The mistake and its place follow only from the seed and the problem.
 */
function withMistake(row: Row, seed: number): Row {
  const answer = row.answer!;
  const problem = String(row.columns.problem);
  // The order of the rows uses the keys of 0.
  const [first, ...random] = roundKeys(seed, 1 + Number(problem));
  const names = Object.keys(MISTAKES);
  const turned = names.map((_, i) => names[(first! + i) % names.length]!);
  const tried = turned.map((mistake) => ({
    mistake,
    rejected: MISTAKES[mistake]!({ answer, problem, random }),
  }));
  // `short` always differs.
  const { mistake, rejected } = tried.find((one) => one.rejected !== answer)!;
  return { ...row, rejected, columns: { ...row.columns, mistake } };
}
