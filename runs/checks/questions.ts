import { z } from "zod";
import type { Config } from "../../configs/mod.ts";
import { readDerivedJson } from "../../engine/mod.ts";
import type { RowTables } from "../../flows/mod.ts";
import { functionOf, type RewardConfig } from "../../rewards/mod.ts";
import { onGpu, type TrainerConfig } from "../../workers/mod.ts";
import { type Scheduled, schedulesThatEnd } from "./schedules_that_end.ts";

/** A worker block's data type, and where it runs. */
type Typed = Partial<Pick<TrainerConfig, "dtype" | "device">>;
type Sized = {
  trainer?: Typed;
  value_model?: Typed | null;
  sampler?: { tokens_max: number; max_model_len: number | null } & Typed;
  model?: { path?: string };
  prompts_per_round?: number;
  rows_per_round?: number;
  pairs_per_round?: number;
  warmup?: { rows_per_round?: number } | null;
  online?: { prompts_per_round?: number };
  reward?: readonly RewardConfig[];
  evaluate?: { sets?: readonly { reward?: readonly RewardConfig[] }[] | null } | null;
};

/** What a question asks of the machine. `cpuFlags`: of its CPU, as Linux names them; null: unknown. */
type Machine = { cpuFlags: () => string | null; isRoot: () => boolean };
const THIS_MACHINE: Machine = { cpuFlags: readCpuFlags, isRoot: () => Deno.uid() === 0 };

/**
 * Settings that are allowed but probably not intended, each as a sentence with a fix. They stop
 * nothing: a person reads them before the run has cost anything.
 */
export function questionsOf(
  config: Partial<Config>,
  rows: RowTables,
  { cpuFlags, isRoot }: Machine = THIS_MACHINE,
): string[] {
  const { sampler, ...blocks } = config as Sized;
  const sized = samples(config) ? { ...blocks, sampler } : blocks;
  return [
    ...schedulesThatEnd(config as Scheduled),
    ...tokensBeyondContext(sized),
    ...roundsBeyondRows(sized, rows),
    ...slowIn16Bits(sized, cpuFlags),
    ...(isRoot() ? freeRewards(sized) : []),
  ];
}

/** A program of root's that sees every process may end them all: `os.kill(-1, 9)`. */
function freeRewards({ reward = [], evaluate }: Sized): string[] {
  const sets = evaluate?.sets?.flatMap((set) => set.reward ?? []) ?? [];
  const free = [...reward, ...sets].flatMap((entry) => {
    const imported = functionOf(entry);
    return imported === null || imported.process.isolate ? [] : [imported.source];
  });
  return [...new Set(free)].map((source) =>
    `reward ${source} has isolate: false and runs as root: it can end and read every process of ` +
    "this machine. Fix: leave isolate out, or run as a different user"
  );
}

/** Whether a run samples at all: supervised ones do so only to evaluate by rewards. */
function samples(config: Partial<Config>): boolean {
  if (config.flow !== "supervised") return true;
  const { evaluate, reward = [] } = config;
  return !!evaluate && (reward.length > 0 || evaluate.sets.some((set) => set.reward !== null));
}

function readCpuFlags(): string | null {
  try {
    const cpus = Deno.readTextFileSync("/proc/cpuinfo");
    return /^(?:flags|Features)\s*:(.*)$/m.exec(cpus)?.[1] ?? null;
  } catch {
    return null; // Not Linux, or not to be read.
  }
}

/**
 * A CPU without instructions for a type of 16 bits converts every operand. Matrix products of 16 to
 * 512 rows took 4 to 6 times what float32 takes in bfloat16 (PyTorch 2.13 limited to AVX2), and 95
 * to 140 times in float16 (AVX-512 without FP16).
 */
const IN_16_BITS = {
  bfloat16: { flags: /\b(?:avx512_bf16|amx_bf16|bf16)\b/, faster: "several times faster" },
  float16: { flags: /\b(?:avx512_fp16|amx_fp16|asimdhp)\b/, faster: "a hundred times faster" },
};

function slowIn16Bits(
  { trainer, value_model, sampler }: Sized,
  cpuFlags: () => string | null,
): string[] {
  return Object.entries({ trainer, value_model, sampler }).flatMap(([block, typed]) => {
    if (!typed?.dtype || typed.dtype === "float32" || onGpu(typed.device ?? "auto")) return [];
    const { flags, faster } = IN_16_BITS[typed.dtype];
    const known = cpuFlags();
    if (known === null || flags.test(known)) return [];
    return [
      `${block}.dtype is ${typed.dtype}, but this machine's CPU has no ${typed.dtype} ` +
      `instructions: float32 is ${faster}. Fix: ${block}.dtype=float32`,
    ];
  });
}

function tokensBeyondContext({ sampler, model }: Sized): string[] {
  const context = model?.path === undefined ? null : positionsOf(model.path);
  const [room, whose] = sampler?.max_model_len
    ? [Math.min(sampler.max_model_len, context ?? Infinity), "sampler.max_model_len"]
    : [context, "the model's context"];
  if (sampler === undefined || room === null || sampler.tokens_max < room) return [];
  return [
    `sampler.tokens_max is ${sampler.tokens_max}, but ${whose} has room for ${room} tokens, ` +
    "including the prompt: " +
    `every completion ends there. Fix: lower sampler.tokens_max`,
  ];
}

/** One epoch has every row once, so a larger round has some rows twice. */
function roundsBeyondRows(sized: Sized, { train }: RowTables): string[] {
  if (train === undefined) return [];
  const counts: [string, number | undefined][] = [
    ["prompts_per_round", sized.prompts_per_round],
    ["rows_per_round", sized.rows_per_round],
    ["pairs_per_round", sized.pairs_per_round],
    ["warmup.rows_per_round", sized.warmup?.rows_per_round],
    ["online.prompts_per_round", sized.online?.prompts_per_round],
  ];
  return counts.flatMap(([path, count]) =>
    count === undefined || count <= train.size ? [] : [
      `${path} is ${count}, but there are ${train.size} rows to train on: a round has every row ` +
      `${(count / train.size).toFixed(1)} times. Fix: lower ${path}, or add rows`,
    ]
  );
}

const Positions = z.looseObject({ max_position_embeddings: z.number() });
const ModelConfig = z.union([
  z.looseObject({ text_config: Positions }).transform((c) => c.text_config),
  Positions,
]);

/**
 * The number of positions in a model directory's configuration; null: it has none, or cannot be
 * read. Whether the directory is a model is checked elsewhere, with a separate message.
 */
function positionsOf(dir: string): number | null {
  const { data } = ModelConfig.safeParse(readDerivedJson(`${dir}/config.json`));
  return data?.max_position_embeddings ?? null;
}
