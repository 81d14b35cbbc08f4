import { createHash } from "node:crypto";
import { z } from "zod";
import { permute, roundKeys } from "./order.ts";
import type { Row } from "../prompt.ts";
import { setting } from "../setting.ts";
import { computedTable, type RowTable } from "../rows/row_table.ts";

const /** @internal */ digitsTaskSchema = z.strictObject({
  name: z.enum(["sort_digits", "reverse_digits"]).default("sort_digits").describe(
    "What the completion must be.",
  ),
  digits: z.int().min(2).max(9).default(5).describe(
    "Digits per problem; there are 10^digits problems.",
  ).register(setting, { unit: "digits" }),
});
/**
 * A task that a tiny model learns on a CPU in a minute: sorting or reversing the digits of a
 * number.
 */
export type DigitsTask = z.infer<typeof digitsTaskSchema>;
/** Schema of {@linkcode DigitsTask}. */
export const DigitsTask: typeof digitsTaskSchema = digitsTaskSchema;

/** Problems held out by default. */
export const EVAL_PROBLEMS = 128;

/** The task, the seed that permutes its problems, and how many are held out. */
export type DigitsSplit = DigitsTask & {
  seed: number;
  /** Problems held out for evaluation; all others are for training. */
  eval_problems: number;
};

/**
 * Training and evaluation problems, disjoint by construction: the seed permutes all 10^digits
 * problems, the first `eval_problems` are for evaluation, the rest for training. Nothing is stored:
 * a row is computed from its place.
 */
export function digitsTables(split: DigitsSplit): { train: RowTable; eval: RowTable } {
  const all = 10 ** split.digits;
  if (split.eval_problems < 1 || split.eval_problems >= all) {
    throw new RangeError(
      `Cannot hold out ${split.eval_problems} of ${all} problems: keep some for training too`,
    );
  }
  const keys = roundKeys(split.seed, 0);
  const table = (part: string, { from, size }: { from: number; size: number }): RowTable => {
    const named = JSON.stringify([part, split.name, split.digits, split.seed, size]);
    return computedTable({
      size,
      digest: createHash("sha256").update(named).digest("hex"),
      row: (place) => digitsRow(permute(from + place, { rows: all, keys }), split),
    });
  };
  return {
    train: table("train", { from: split.eval_problems, size: all - split.eval_problems }),
    eval: table("eval", { from: 0, size: split.eval_problems }),
  };
}

function digitsRow(number: number, { name, digits }: DigitsTask): Row {
  const problem = String(number).padStart(digits, "0");
  const answer = name === "sort_digits"
    ? [...problem].sort().join("")
    : [...problem].reverse().join("");
  const verb = name === "sort_digits" ? "sort" : "reverse";
  return {
    row_id: `${verb}/${problem}`,
    prompt: `${verb} ${problem} =`,
    completion: answer,
    answer,
    columns: { task: name, problem, answer },
  };
}
