import { z } from "zod";
import { declaredFacts, Optimizer, setting } from "../../data/mod.ts";
import { TrainerConfig } from "./trainer_config.ts";

/** A setting of `trainer:` that may differ for the value model. */
function overridable<Type extends z.ZodType>(
  name: string,
  field: z.ZodDefault<Type>,
): z.ZodDefault<z.ZodNullable<Type>> {
  const owned = z.nullable(field.unwrap()).default(null as never).describe(
    `Like trainer.${name}, for the value model; null: the trainer's value.`,
  );
  setting.add(owned, declaredFacts(field));
  return owned;
}

const {
  engine,
  ranks,
  zero,
  dtype,
  micro_batch_tokens_max,
  gradient_checkpointing,
  threads,
  device,
} = TrainerConfig.shape;

/** The `value_model:` block: a second trainer, read if the algorithm has a value loss. */
export const ValueModelConfig = z.strictObject({
  path: z.string().min(1).nullable().default(null).describe(
    "A model directory to start from: a language model, or a trained value model. null: the " +
      "policy's model.",
  ).register(setting, {
    fork: { fixed: "round_1", why: "every version of the prefix's value model descends from it" },
  }),
  warmup_rounds: z.int().nonnegative().default(0).describe(
    "First rounds in which only the value model is trained and the policy stays fixed.",
  ).register(setting, { unit: "rounds" }),
  optimizer: Optimizer.extend({
    lr: Optimizer.shape.lr.unwrap().default(1e-5).describe(
      "The learning rate, higher than a policy's.",
    ),
  }).prefault({}).describe("The optimizer, its schedule and its gradient clipping."),
  engine: overridable("engine", engine),
  ranks: overridable("ranks", ranks),
  zero: overridable("zero", zero),
  dtype: overridable("dtype", dtype),
  micro_batch_tokens_max: overridable("micro_batch_tokens_max", micro_batch_tokens_max),
  gradient_checkpointing: overridable("gradient_checkpointing", gradient_checkpointing),
  threads: overridable("threads", threads),
  device: overridable("device", device),
  devices: TrainerConfig.shape.devices.describe(
    "GPUs of the value model's ranks, one each; null: those the trainer does not use, or " +
      "else the trainer's.",
  ),
  python: overridable("python", TrainerConfig.shape.python),
}).register(setting, { numerics: false, fork: "free", resume: "refused" });
export type ValueModelConfig = z.infer<typeof ValueModelConfig>;

type Block = Omit<TrainerConfig, "optimizer">;

/**
 * The trainer's block that the value model's group has: the policy's, except for what `value_model`
 * sets, and without a moving average.
 */
export function valueTrainer(trainer: Block, valueModel: ValueModelConfig): Block {
  const { path: _, warmup_rounds: __, optimizer: ___, devices, ...settings } = valueModel;
  const others = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== null));
  return { ...trainer, ema_decay: null, ...others, devices };
}
