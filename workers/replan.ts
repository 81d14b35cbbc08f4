import { z } from "zod";
import { InvalidInputError } from "../engine/mod.ts";
import { TrainerConfig } from "./trainer_config.ts";

/** What a replan may change: nothing else of a run's numerics may. */
export const REPLAN_FIELDS = ["trainer.micro_batch_tokens_max", "trainer.ranks", "trainer.devices"] as const;
export type ReplanField = typeof REPLAN_FIELDS[number];

/**
 * A `note/replan` row: numerics that are others from here on. Before it a run is promised to the bit, from it on its gradient is
 * the same to rounding. Steps that are redone use the numerics that each was recorded with.
 */
export const Replan = z.strictObject({
  round: z.int().nullable().describe("The round in whose work it came; null: before any, at a resume."),
  cause: z.string().describe("out_of_memory; asked: a person did, at a resume."),
  field: z.enum(REPLAN_FIELDS),
  from: z.union([z.int(), z.array(z.int())]).nullable(),
  to: z.union([z.int(), z.array(z.int())]).nullable(),
});
export type Replan = z.infer<typeof Replan>;

/** What a person asked for at a resume. */
export type AskedReplan = Partial<Record<ReplanField, unknown>>;
type Planned = Pick<TrainerConfig, "engine" | "ranks" | "devices" | "micro_batch_tokens_max">;

/** The trainer's block after these replans. */
export function replanned<T extends Planned>(trainer: T, replans: readonly Replan[]): T {
  const to = Object.fromEntries(replans.map((replan) => [replan.field.replace("trainer.", ""), replan.to]));
  return { ...trainer, ...to };
}

/**
 * The rows that say what was asked for; what is so already gives none.
 * @throws {InvalidInputError} For a value that the trainer cannot have.
 */
export function askedReplans(trainer: Planned, replans: readonly Replan[], asked: AskedReplan): Replan[] {
  const now = replanned(trainer, replans);
  const rows = Object.entries(asked).flatMap(([name, value]): Replan[] => {
    const field = name as ReplanField;
    const key = field.replace("trainer.", "") as "ranks" | "devices" | "micro_batch_tokens_max";
    const parsed = TrainerConfig.shape[key].safeParse(value);
    if (!parsed.success) {
      const why = parsed.error.issues[0]!.message;
      throw new InvalidInputError(`Cannot resume with ${field}=${JSON.stringify(value)}: ${why}`, { field, value });
    }
    if (JSON.stringify(parsed.data) === JSON.stringify(now[key])) return [];
    return [{ round: null, cause: "asked", field, from: now[key], to: parsed.data }];
  });
  const then = replanned(now, rows);
  if (then.engine !== "torch" || then.ranks === 1) return rows;
  throw new InvalidInputError(
    `Cannot resume with trainer.ranks=${then.ranks} as trainer.engine is torch, which is one process`,
    { ranks: then.ranks },
  );
}

/** Tokens that a micro-batch may hold: the configured number, or the one of the last replan. */
export function microBatchTokensMax(configured: number, replans: readonly Replan[]): number {
  const last = replans.findLast(({ field }) => field === "trainer.micro_batch_tokens_max");
  return (last?.to as number | undefined) ?? configured;
}

/** The round that a key lies in: 3 of `round/3/train_policy`; null outside of any. */
export function roundOf(key: string): number | null {
  const found = key.split("/").findLast((part) => /^\d+$/.test(part));
  return found === undefined ? null : Number(found);
}
