import { z } from "zod";
import { Arguments, Output } from "./payload.ts";

/**
 * The messages between the engine's hub and a host's agent, declared once. The Python side reads
 * them as the classes made from this file (`workers/python/holdfast_worker/wire/frames.py`), which
 * check them.
 *
 * Control: JSON text frames. Data: binary frames, MessagePack of `BlobFrame`. Sizes: `LIMITS`.
 * Reliable messages carry `seq` (1, 2, ... per boot and direction) and are resent after a reconnect
 * until acknowledged; the others may be lost. An acknowledgement concerns the line only: the agent
 * keeps a task's answer until it is released, because the engine may die before its row is durable.
 * Every message from the engine carries the run's epoch. An agent answers lower epochs with
 * `fenced`.
 */
export const PROTOCOL_VERSION = 5;

const id = z.string().min(1).max(200);
const reliable = { seq: z.int().positive() };
const json = z.unknown();

/** What a rank does, as its agent sees it. */
export const RankStateName = z.enum(["starting", "ready", "busy", "exited"]);

const /** @internal */ rankStateSchema = z.strictObject({
  rank: z.int().nonnegative(),
  pid: z.int(),
  process_start: z.string().describe(
    "Start time from /proc: distinguishes two processes with the same pid.",
  ),
  state: RankStateName,
  exit_code: z.int().nullable().default(null),
  signal: z.string().nullable().default(null),
  process_state: z.string().nullable().default(null).describe(
    "Its state in the kernel: running, sleeping, stopped, waiting for the disk, ...; null: it " +
      "has ended.",
  ),
});
/** One rank of a worker group, as its agent reports it. */
export type RankState = z.infer<typeof rankStateSchema>;
/** Schema of {@linkcode RankState}. */
export const RankState: typeof rankStateSchema = rankStateSchema;

/** Where a generation of a group is in its life. */
export const GroupStateName = z.enum(["starting", "ready", "failed", "stopped"]);

const /** @internal */ groupStateSchema = z.strictObject({
  group: id,
  generation: z.int().positive(),
  state: GroupStateName,
  ranks: z.array(RankState),
});
/** A worker group and its ranks, as its agent reports them. */
export type GroupState = z.infer<typeof groupStateSchema>;
/** Schema of {@linkcode GroupState}. */
export const GroupState: typeof groupStateSchema = groupStateSchema;

/**
 * A group as a hello describes it, so that another engine can tell whether it would start the same
 * group.
 */
export const HeldGroup = z.strictObject({
  ...GroupState.shape,
  role: z.string(),
  spec_hash: z.string().describe("The name that the engine gave it."),
  info: z.record(z.string(), json).describe("What rank 0 reported when ready."),
});
export type HeldGroup = z.infer<typeof HeldGroup>;

/**
 * A task that runs on a host, or whose answer is kept there. Tasks of one group are in the order in
 * which they were sent.
 */
export const HeldTask = z.strictObject({
  task: id,
  group: id,
  generation: z.int(),
  key: z.string(),
  attempt: z.int(),
  epoch: z.int(),
  op: z.string(),
  args_hash: z.string().describe("The key that the engine gave it."),
  cancelled: z.boolean(),
  state: z.enum(["running", "finished"]),
});
export type HeldTask = z.infer<typeof HeldTask>;

/** What a rank or its agent can be sure of. */
export const FailureCause = z.enum([
  "exit",
  "signal",
  "import_error",
  "out_of_memory",
  "user_code",
  "bad_data",
  "cancelled",
  "disk_full",
  "timeout",
  "other",
]);

const /** @internal */ failureReportSchema = z.strictObject({
  rank: z.int().nonnegative(),
  cause: FailureCause.describe(
    "The kind, if the rank or its agent knows it; the engine infers the others from " +
      "the texts.",
  ),
  exception: z.string().nullable(),
  message: z.string(),
  traceback: z.string().nullable(),
  exit_code: z.int().nullable(),
  signal: z.string().nullable(),
  log_tail: z.array(z.string()).max(40),
  log_errors: z.array(z.string()).max(40).default([]).describe(
    "Earlier lines of the log that look like errors.",
  ),
  kernel: z.array(z.string()).max(20).default([]).describe(
    "The kernel log's lines about this process or its devices.",
  ),
  oom_kills: z.int().nullable().default(null).describe(
    "Out-of-memory kills counted by its cgroup since its start; null: unknown on this host.",
  ),
  log_path: z.string(),
  at_ms: z.number(),
});
/** What one rank said about its failure; the engine picks the root among the ranks' reports. */
export type FailureReport = z.infer<typeof failureReportSchema>;
/** Schema of {@linkcode FailureReport}. */
export const FailureReport: typeof failureReportSchema = failureReportSchema;

/** One of a result's blobs. */
export const BlobRef = z.strictObject({ sha256: z.string(), bytes: z.int() });

/** Agent to engine. */
export const /** @internal */ AgentMessage = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("hello"),
    protocol: z.int(),
    agent_id: id,
    boot_id: id,
    engine_boot: z.string().nullable().describe(
      "The engine boot this agent last served; null at its first hello.",
    ),
    pid: z.int(),
    host: z.string(),
    packages: z.record(z.string(), z.string()),
    gpus: z.array(z.string()).default([]).describe(
      "The GPUs that its ranks may use, as CUDA_VISIBLE_DEVICES names them.",
    ),
    gpu_order: z.literal("PCI_BUS_ID").nullable().default(null).describe(
      "CUDA_DEVICE_ORDER that the names follow; null: the host's environment decides.",
    ),
    groups: z.array(HeldGroup),
    tasks: z.array(HeldTask),
    received_seq: z.int().nonnegative().describe("Highest seq received from this engine boot."),
  }),
  z.strictObject({ type: z.literal("accepted"), task: id }),
  z.strictObject({
    type: z.literal("progress"),
    task: id,
    rank: z.int(),
    phase: z.string(),
    done: z.number(),
    total: z.number().nullable(),
    metrics: z.record(z.string(), z.number()).default({}),
  }),
  z.strictObject({
    type: z.literal("rendezvous"),
    ...reliable,
    group: id,
    generation: z.int().positive(),
    address: z.string(),
    port: z.int().positive(),
  }).describe("Where the ranks of a group meet, for ranks on hosts without rank 0."),
  z.strictObject({ type: z.literal("log"), group: id, rank: z.int(), line: z.string() }),
  z.strictObject({ type: z.literal("heartbeat"), groups: z.array(GroupState) }),
  z.strictObject({ type: z.literal("leaving"), grace_ms: z.int().nonnegative() }).describe(
    "The host is being reclaimed: the agent ends its ranks and itself after this long.",
  ),
  z.strictObject({ type: z.literal("ack"), received_seq: z.int().nonnegative() }),
  z.strictObject({
    type: z.literal("fenced"),
    epoch: z.int().describe("The highest epoch this agent has seen."),
  }),
  z.strictObject({
    type: z.literal("result"),
    ...reliable,
    task: id,
    outputs: z.array(Output).describe("One per rank, in rank order."),
    blobs: z.array(BlobRef).describe(
      "Rank 0's, then those of outputs; sent as binary frames before.",
    ),
  }),
  z.strictObject({
    type: z.literal("error"),
    ...reliable,
    task: id,
    failures: z.array(FailureReport).min(1),
  }),
  z.strictObject({
    type: z.literal("group"),
    ...reliable,
    ...GroupState.shape,
    info: z.record(z.string(), json).default({}).describe(
      "What rank 0 reports when ready: device, packages, repeats.",
    ),
    failures: z.array(FailureReport).default([]),
  }),
]);
export type AgentMessage = z.infer<typeof AgentMessage>;

/** What an engine that connects wants of a task that the agent's hello named. */
export const TaskVerdict = z.strictObject({
  task: id,
  verdict: z.enum(["continue", "deliver", "keep", "drop"]),
});

/** Where rank 0 of a group listens. */
export const Rendezvous = z.strictObject({ address: z.string(), port: z.int().positive() });

/** The ranks of a group that one host has, in a row. */
export const GroupPart = z.strictObject({
  first: z.int().nonnegative(),
  ranks: z.int().positive(),
  rendezvous: Rendezvous.nullable().describe("null: rank 0 is here, and the agent says where."),
});

/** Engine to agent. */
const fromEngine = { epoch: z.int().positive() };
export const /** @internal */ EngineMessage = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("welcome"),
    ...fromEngine,
    engine_boot: id,
    run: id,
    heartbeat_ms: z.int().positive(),
    grace_ms: z.int().nonnegative().describe(
      "After this long without an engine the agent kills its ranks and ends.",
    ),
    preempt_grace_ms: z.int().nonnegative().describe(
      "Time from the agent's SIGTERM to its end, unless its environment sets a different one.",
    ),
    received_seq: z.int().nonnegative(),
    verdict: z.enum(["continue", "drop"]).describe("drop: kill your ranks and end."),
    tasks: z.array(TaskVerdict).describe(
      "continue: it runs. deliver: send its answer. keep: the answer arrived, its row is not " +
        "durable yet. drop: nothing needs it.",
    ),
  }),
  z.strictObject({
    type: z.literal("start_group"),
    ...fromEngine,
    ...reliable,
    group: id,
    role: z.string(),
    generation: z.int().positive(),
    ranks: z.int().positive().describe("Of the whole group."),
    part: GroupPart.optional().describe(
      "The consecutive ranks of this host; absent: all ranks are on it.",
    ),
    python: z.string(),
    module: z.string().describe("Python module with the role's `Worker` class."),
    env: z.record(z.string(), z.string()),
    spec: json.describe("The resolved configuration, sent to every rank."),
    spec_hash: z.string().describe("Hash of everything that defines the group; repeated in hello."),
    interface: z.string().nullable().describe(
      "The only network interface of the ranks' sockets; null: loopback.",
    ),
    log_dir: z.string(),
    start_timeout_ms: z.int().positive(),
  }),
  z.strictObject({
    type: z.literal("stop_group"),
    ...fromEngine,
    ...reliable,
    group: id,
    generation: z.int(),
    grace_ms: z.int().nonnegative(),
  }),
  z.strictObject({
    type: z.literal("task"),
    ...fromEngine,
    ...reliable,
    task: id,
    group: id,
    generation: z.int(),
    key: z.string(),
    attempt: z.int(),
    op: z.string(),
    args: Arguments,
    args_hash: z.string(),
  }),
  z.strictObject({ type: z.literal("release"), ...fromEngine, ...reliable, task: id }).describe(
    "The task's row is durable: its answer is no longer needed.",
  ),
  z.strictObject({ type: z.literal("cancel"), ...fromEngine, ...reliable, task: id }),
  z.strictObject({ type: z.literal("shutdown"), ...fromEngine, ...reliable }),
  z.strictObject({ type: z.literal("ack"), ...fromEngine, received_seq: z.int().nonnegative() }),
]);
export type EngineMessage = z.infer<typeof EngineMessage>;

/**
 * A piece of a result's data. Sent before the `result` that names it, and resent completely with
 * it.
 */
export type BlobFrame = {
  task: string;
  blob: number;
  offset: number;
  total: number;
  data: Uint8Array;
};
