import { z } from "zod";
import { setting, type SettingFacts } from "../data/mod.ts";

/** Trackers read what is recorded and change nothing: no result depends on them. */
export const TRACKED: SettingFacts = {
  numerics: false,
  fork: "free",
  resume: "workers",
};

const /** @internal */ metricStyles = ["holdfast", "trl", "verl", "openrlhf"] as const;
/** Whose names metrics have. */
export type MetricStyle = typeof metricStyles[number];

/** What every tracker has. */
const everyTracker = {
  style: z.enum(metricStyles).default("holdfast").describe(
    "Whose names metrics have; those that a framework has no name for keep ours.",
  ).register(setting, TRACKED),
  samples: z.int().nonnegative().default(8).describe(
    "Completions of each round that are sent as a table; 0: none.",
  ).register(setting, { ...TRACKED, unit: "samples" }),
  samples_every_rounds: z.int().positive().default(10).describe(
    "Rounds between two tables of completions.",
  ).register(setting, { ...TRACKED, unit: "rounds" }),
  flush_timeout_s: z.number().positive().default(60).describe(
    "How long an ending run waits for points that were not sent yet.",
  ).register(setting, { ...TRACKED, unit: "s" }),
  python: z.string().min(1).nullable().default(null).describe(
    "Your own interpreter, which has the tracker's client; null: a managed environment.",
  ).register(setting, TRACKED),
};

const project = z.string().min(1).default("holdfast");
const NO_PASSWORD = "it contains a user or a password, which would be recorded. Fix: leave them " +
  "out, and set ";

/** An address without credentials, because configurations are recorded. */
const address = (variables: string) =>
  z.string().min(1).refine((text) => !/^[a-z+]+:\/\/[^/]*@/i.test(text), {
    error: `${NO_PASSWORD}${variables}`,
  });

const TensorBoard = z.strictObject({
  name: z.literal("tensorboard").describe("Event files, which `tensorboard --logdir` shows.")
    .register(setting, TRACKED),
  dir: z.string().min(1).nullable().default(null).describe(
    "Directory of event files, one below it for each run; null: tensorboard/ of the run.",
  ).register(setting, TRACKED),
  ...everyTracker,
}).register(setting, TRACKED);

const MLflow = z.strictObject({
  name: z.literal("mlflow").describe("An MLflow server, or a directory of runs.")
    .register(setting, TRACKED),
  uri: address("MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD").nullable().default(null)
    .describe("The server, http://... or file:/...; null: MLFLOW_TRACKING_URI.")
    .register(setting, TRACKED),
  experiment: z.string().min(1).default("holdfast").describe("The experiment of its runs.")
    .register(setting, TRACKED),
  ...everyTracker,
}).register(setting, TRACKED);

const WandB = z.strictObject({
  name: z.literal("wandb").describe("Weights & Biases. Reads WANDB_API_KEY.")
    .register(setting, TRACKED),
  mode: z.enum(["online", "offline"]).default("online").describe(
    "offline: files only, which `wandb sync` uploads.",
  ).register(setting, TRACKED),
  project: project.describe("The project of its runs.").register(setting, TRACKED),
  entity: z.string().min(1).nullable().default(null).describe(
    "The user or team that owns the project; null: the account's default.",
  ).register(setting, TRACKED),
  dir: z.string().min(1).nullable().default(null).describe(
    "Directory of the client's files; null: the run's.",
  ).register(setting, TRACKED),
  ...everyTracker,
}).register(setting, TRACKED);

const Trackio = z.strictObject({
  name: z.literal("trackio").describe("A trackio database, which `trackio show` shows.")
    .register(setting, TRACKED),
  project: project.describe("The project of its runs.").register(setting, TRACKED),
  uri: address("TRACKIO_WRITE_TOKEN").nullable().default(null).describe(
    "A trackio server; null: files in `dir`.",
  ).register(setting, TRACKED),
  dir: z.string().min(1).nullable().default(null).describe(
    "Directory of the databases; null: TRACKIO_DIR, or else trackio/ of the home.",
  ).register(setting, TRACKED),
  ...everyTracker,
}).register(setting, TRACKED);

/** One tracker and its settings. */
export const TrackerConfig = z.discriminatedUnion("name", [TensorBoard, MLflow, WandB, Trackio]);
export type TrackerConfig = z.infer<typeof TrackerConfig>;

/** Where a run's metrics are sent, besides metrics.jsonl. */
export const TrackConfig = z.array(TrackerConfig).register(setting, TRACKED);
export type TrackConfig = z.infer<typeof TrackConfig>;
