import { z } from "zod";
import { type InFork, Optimizer, setting } from "../../data/mod.ts";

/** For settings that rebuild versions. */
const REBUILT: InFork = {
  fixed: "round_1",
  why: "the prefix's versions are rebuilt with it, bit for bit",
};
/** As `REBUILT`, for settings that the state of a checkpoint does not depend on. */
const COMPUTED: InFork = { ...REBUILT, start: "free" };

/** Low-rank adapters, trained in place of the weights. */
export const Lora = z.strictObject({
  rank: z.int().positive().max(1024).default(16).describe(
    "Inner size of each adapter's two matrices.",
  ).register(setting, { fork: REBUILT }),
  alpha: z.number().positive().default(32).describe(
    "The adapter's product is scaled by alpha / rank.",
  ).register(setting, { fork: REBUILT }),
  dropout: z.number().min(0).lt(1).default(0).describe(
    "Dropout of the adapters' inputs; supervised training only.",
  ).register(setting, { fork: REBUILT }),
  targets: z.union([z.literal("all_linear"), z.array(z.string().min(1)).min(1)]).default(
    "all_linear",
  ).describe(
    "Linear layers with an adapter, by the end of their names; all_linear: all except the " +
      "output head.",
  ).register(setting, { fork: REBUILT }),
  quantize: z.enum(["nf4"]).nullable().default(null).describe(
    "nf4: store the frozen weights in 4 bits (QLoRA); needs bitsandbytes. null: unquantised.",
  ).register(setting, { fork: REBUILT }),
  publish: z.enum(["merged", "adapter"]).default("merged").describe(
    "What samplers receive and the run exports: a merged model directory, or a PEFT " +
      "directory for the base model.",
  ).register(setting, { numerics: false }),
});
type Lora = z.infer<typeof Lora>;

/** What is kept in host memory while the GPU does not need it. */
export const Offload = z.strictObject({
  optimizer: z.boolean().default(false).describe(
    "Keep float32 weights and AdamW's moments on the CPU and run the step there; ZeRO 1 to 3.",
  ),
  parameters: z.boolean().default(false).describe(
    "Keep the weights on the CPU and fetch them layer by layer; ZeRO 3.",
  ),
});

/** The settings that every rank of a trainer is started with. */
export const TrainerProcess = z.strictObject({
  engine: z.enum(["torch", "deepspeed"]).default("torch").describe(
    "The engine of the training step. torch: one process; deepspeed: any number of ranks.",
  ).register(setting, { numerics: true, fork: REBUILT }),
  zero: z.int().min(0).max(3).default(0).describe(
    "DeepSpeed's ZeRO stage: what is sharded over the ranks (1: optimizer, 2: also " +
      "gradients, 3: also weights).",
  ).register(setting, { numerics: true, fork: REBUILT }),
  dtype: z.enum(["float32", "bfloat16", "float16"]).default("float32").describe(
    "Data type of the weights and activations.",
  ).register(setting, { numerics: true, fork: REBUILT }),
  logits_chunk_tokens: z.int().positive().nullable().default(4096).describe(
    "Trained tokens whose logits are in memory at once; more tokens are computed in chunks, and " +
      "again in the backward pass. null: no chunks.",
  ).register(setting, { unit: "tokens", numerics: true }),
  packing: z.boolean().default(false).describe(
    "Pack sequences into rows instead of padding them, and store a group's common prefix " +
      "once. Sequences never see each other.",
  ).register(setting, { numerics: true }),
  dropout: z.number().min(0).lt(1).default(0).describe(
    "The model's dropout in supervised training. Off elsewhere, because log-probabilities " +
      "must not depend on chance.",
  ).register(setting, { numerics: true, fork: COMPUTED }),
  lora: Lora.nullable().default(null).describe(
    "Train low-rank adapters (PEFT) and freeze the model's weights; null: train all weights.",
  ).register(setting, { numerics: true }),
  offload: Offload.prefault({}).describe("DeepSpeed's offload to the CPU.").register(setting, {
    numerics: true,
    fork: REBUILT,
  }),
  ema_decay: z.number().gt(0).lt(1).nullable().default(null).describe(
    "Keep an exponential moving average of the weights with this decay per optimizer step, written " +
      "to every checkpoint (`ema/`) and at the end of the run (`final_ema`). null: none.",
  ).register(setting, {
    fork: {
      fixed: "round_1",
      start: "free",
      why: "the average is that of all versions, the prefix's included",
    },
  }),
  gradient_checkpointing: z.boolean().default(false).describe(
    "Recompute activations instead of keeping them.",
  ).register(setting, { fork: COMPUTED }),
  threads: z.int().positive().default(1).describe("CPU threads of each rank. Part of the numerics.")
    .register(setting, { unit: "threads", numerics: true, fork: COMPUTED }),
  device: z.enum(["auto", "cpu", "cuda"]).default("auto").describe(
    "Where tensors live; auto: a GPU if there is one.",
  ).register(setting, { numerics: true, fork: COMPUTED }),
});

const /** @internal */ trainerConfigSchema = z.strictObject({
  ...TrainerProcess.shape,
  ranks: z.int().positive().max(1024).default(1).describe("Number of trainer processes.").register(
    setting,
    { unit: "processes", numerics: true, resume: "replan" },
  ),
  micro_batch_tokens_max: z.int().positive().default(4096).describe(
    "Maximum tokens per micro-batch, including padding. Affects memory, not the gradient.",
  ).register(setting, { unit: "tokens", numerics: true, resume: "replan" }),
  non_finite_max: z.int().positive().default(3).describe(
    "Consecutive steps with a non-finite loss or gradient norm that fail the run; such " +
      "steps are skipped and counted.",
  ).register(setting, { unit: "steps", resume: "workers" }),
  updates_per_batch: z.int().positive().default(1).describe(
    "Optimizer steps per pass over a round's batch.",
  ).register(setting, { unit: "steps" }),
  epochs_per_batch: z.int().positive().default(1).describe(
    "Passes over a round's batch: the first in draw order, the others in orders derived " +
      "from the seed.",
  ).register(setting, { unit: "passes" }),
  optimizer: Optimizer.prefault({}).describe(
    "The optimizer, its schedule and its gradient clipping.",
  ),
  devices: z.array(z.int().nonnegative()).min(1).nullable().default(null).describe(
    "GPUs of the ranks, one each: positions in CUDA_VISIBLE_DEVICES, or nvidia-smi's " +
      "numbers if it is not set; null: the first ones.",
  ).register(setting, { resume: "replan" }),
  python: z.string().min(1).nullable().default(null).describe(
    "Interpreter of a custom environment, which Holdfast checks but never changes; null: a " +
      "managed environment.",
  ),
}).register(setting, { numerics: false, fork: "free", resume: "refused" });
/** The `trainer:` block. */
export type TrainerConfig = z.infer<typeof trainerConfigSchema>;
/** Schema of {@linkcode TrainerConfig}. */
export const TrainerConfig: typeof trainerConfigSchema = trainerConfigSchema;
