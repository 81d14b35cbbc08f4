import { z } from "zod";
import { declaredFacts } from "../../data/mod.ts";
import { InvalidInputError } from "../../engine/mod.ts";
import { TrainerConfig } from "./trainer_config.ts";
import { ValueModelConfig } from "./value_model_config.ts";

/**
 * The block of the configuration with a trainer's numerics: the policy's or the value model's.
 * @internal
 */
export type TrainerBlock = "trainer" | "value_model";
/** @internal */
type Planned = Pick<TrainerConfig, "engine" | "ranks" | "devices" | "micro_batch_tokens_max">;
/** A field of the numerics that a replan may change. */
export type ReplanField = `${TrainerBlock}.${Exclude<keyof Planned, "engine">}`;

/**
 * What a replan may change, according to the settings. Nothing else in a run's numerics may change.
 */
export const /** @internal */ REPLAN_FIELDS: readonly ReplanField[] = Object.entries({
  trainer: TrainerConfig.shape,
  value_model: ValueModelConfig.shape,
}).flatMap(([block, shape]) =>
  Object.entries(shape).flatMap(([name, field]) =>
    declaredFacts(field).resume === "replan" ? [`${block}.${name}` as ReplanField] : []
  )
);

const /** @internal */ replanSchema = z.strictObject({
  round: z.int().nullable().describe(
    "The round in which it happened; null: at a resume, before any round.",
  ),
  cause: z.string().describe("out_of_memory; asked: requested at a resume."),
  field: z.enum(REPLAN_FIELDS),
  from: z.union([z.int(), z.array(z.int())]).nullable(),
  to: z.union([z.int(), z.array(z.int())]).nullable(),
});
/**
 * A `note/replan` row: numerics that differ from here on. Before this row a run is exact bit for
 * bit. After it the gradient is the same up to rounding. Redone steps use their recorded numerics.
 */
export type Replan = z.infer<typeof replanSchema>;
/** Schema of {@linkcode Replan}. */
export const Replan: typeof replanSchema = replanSchema;

/** What a person requested at a resume. */
export type AskedReplan = Partial<Record<ReplanField, unknown>>;

/** A trainer's block after these replans. */
export function replanned<T extends object>(
  trainer: T,
  replans: readonly Replan[],
  block: TrainerBlock = "trainer",
): T {
  const blockReplans = replans.filter(({ field }) => field.startsWith(`${block}.`));
  return {
    ...trainer,
    ...Object.fromEntries(blockReplans.map(({ field, to }) => [field.slice(block.length + 1), to])),
  };
}

/**
 * The rows for the requested changes. A value that is already set adds none.
 * @throws {InvalidInputError} For a value that the trainer cannot have.
 */
export function requestedReplans(
  trainer: Planned,
  replans: readonly Replan[],
  requested: AskedReplan,
  block: TrainerBlock = "trainer",
): Replan[] {
  const now = replanned(trainer, replans, block);
  const blockFields = Object.entries(requested).filter(([name]) => name.startsWith(`${block}.`));
  const rows = blockFields.flatMap(([name, value]): Replan[] => {
    const field = name as ReplanField;
    const key = field.slice(block.length + 1) as Exclude<keyof Planned, "engine">;
    const parsed = TrainerConfig.shape[key].safeParse(value);
    if (!parsed.success) {
      const why = parsed.error.issues[0]!.message;
      throw new InvalidInputError(`Cannot resume with ${field}=${JSON.stringify(value)}: ${why}`, {
        field,
        value,
      });
    }
    if (JSON.stringify(parsed.data) === JSON.stringify(now[key])) return [];
    return [{ round: null, cause: "asked", field, from: now[key], to: parsed.data }];
  });
  const then = replanned(now, rows, block);
  if (then.engine !== "torch" || then.ranks === 1) return rows;
  throw new InvalidInputError(
    `Cannot resume with ${block}.ranks=${then.ranks} because ${block}.engine is torch, ` +
      "which is one process",
    { ranks: then.ranks },
  );
}

/** Maximum tokens of a micro-batch: the configured number, or that of the last replan. */
export function microBatchTokensMax(
  configured: number,
  replans: readonly Replan[],
  block: TrainerBlock = "trainer",
): number {
  const last = replans.findLast(({ field }) => field === `${block}.micro_batch_tokens_max`);
  return (last?.to as number | undefined) ?? configured;
}

/** The round of a key: 3 for `round/3/train_policy`; null outside of rounds. */
export function roundOf(key: string): number | null {
  const found = key.split("/").findLast((part) => /^\d+$/.test(part));
  return found === undefined ? null : Number(found);
}
