import { z } from "zod";
import { setting } from "../data/mod.ts";

/** Most schedulers give 30 s (Kubernetes, Slurm, spot machines). This leaves a margin. */
export const PREEMPT_GRACE_S = 25;

/** A week. */
const MAX_TIMEOUT_S = 604_800;

/** What an operation of a worker is for, as time limits tell operations apart. */
export const TIMED = ["load", "generate", "score", "train", "save", "publish"] as const;
/** @internal */
export type Timed = typeof TIMED[number];

const timeout = (what: string) =>
  z.number().positive().max(MAX_TIMEOUT_S).nullable().default(null).describe(
    `Seconds that a group may take to ${what}, with or without progress. After that it is ` +
      "replaced as if it hung. null: no limit but that of `no_progress_s`.",
  ).register(setting, { unit: "s" });

const /** @internal */ workersConfigSchema = z.strictObject({
  grace_s: z.number().nonnegative().max(3600).default(30).describe(
    "Seconds that workers keep their models in memory after the engine is gone. A new " +
      "engine adopts them in that time; after it they exit.",
  ).register(setting, { unit: "s" }),
  silent_s: z.number().positive().max(3600).default(5).describe(
    "Seconds without a heartbeat after which a host's agent counts as lost and its workers " +
      "are replaced.",
  ).register(setting, { unit: "s" }),
  start_timeout_s: z.number().positive().max(86_400).default(300).describe(
    "Seconds within which all ranks of a group must be ready.",
  ).register(setting, { unit: "s" }),
  no_progress_s: z.number().positive().max(86_400).default(600).describe(
    "Seconds without progress on any rank after which a group counts as hung and is replaced.",
  ).register(setting, { unit: "s" }),
  load_timeout_s: timeout("load a model and the optimizer's state"),
  generate_timeout_s: timeout("generate the completions that it is asked for at once"),
  score_timeout_s: timeout(
    "score a prompt's samples by rewards, or a batch by log-probabilities or a held-out loss",
  ),
  train_timeout_s: timeout("take all steps on a round's batch"),
  save_timeout_s: timeout("save a checkpoint"),
  publish_timeout_s: timeout("write or load the weights for a sampler"),
  preempt_grace_s: z.number().nonnegative().max(86_400).default(PREEMPT_GRACE_S).describe(
    "Seconds from SIGTERM, with which schedulers reclaim a machine, to the hard stop. In " +
      "that time the policy is saved and the run released. HOLDFAST_PREEMPT_GRACE_S overrides it.",
  ).register(setting, { unit: "s" }),
  host: z.string().min(1).default("127.0.0.1").describe("Address the hub listens on."),
  interface: z.string().min(1).max(15).nullable().default(null).describe(
    "Network interface (`eth0`) whose address the ranks of a group listen on and connect " +
      "to; null: the loopback, which no other machine reaches.",
  ),
  port: z.int().min(0).max(65_535).default(0).describe(
    "Port the hub listens on; 0: any free port.",
  ),
}).register(setting, { numerics: false, fork: "free", resume: "workers" });
/** The `workers:` block: time limits and places of the worker processes. */
export type WorkersConfig = z.infer<typeof workersConfigSchema>;
/** Schema of {@linkcode WorkersConfig}. */
export const WorkersConfig: typeof workersConfigSchema = workersConfigSchema;

/** No time limits: for work that may take longer than in a run, as a redo on another machine. */
export const NO_TIMEOUTS = Object.fromEntries(
  TIMED.map((timed) => [`${timed}_timeout_s`, null]),
) as {
  readonly [name in `${Timed}_timeout_s`]: null;
};
