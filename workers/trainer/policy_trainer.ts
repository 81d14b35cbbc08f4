import {
  type AlgorithmDescription,
  type ArtifactRef,
  AssignedCredit,
  type Chat,
  type ModelHead,
  type Numerics,
  type Optimizer,
  type Policy,
  type RatioBounds,
  type ScoredColumn,
  stepCut,
} from "../../data/mod.ts";
import {
  type ArtifactStore,
  BadDataError,
  canonicalJson,
  type Clock,
  sha256Hex,
} from "../../engine/mod.ts";
import {
  type Answered,
  type ArgumentsOf,
  ask,
  askResident,
  isNotResident,
  type OperationOf,
  type Reply,
} from "../ask.ts";
import { type CallOptions, callOptions } from "../call.ts";
import { makeRoomFor } from "./checkpoint_files.ts";
import { checkpointName, Materialiser } from "./materialiser.ts";
import { ModelDigests } from "./model_digests.ts";
import type { Caller, Operator } from "../operator.ts";
import { type Publication, wholeCheckpoint } from "./model_files.ts";
import type { RestartCause } from "../failures/recovery.ts";
import type { TrainerBlock } from "./replan.ts";
import type { NotResident } from "../roles/role.ts";
import { type EvaluatedBatch, type RefusedRow, trainerRole } from "../roles/trainer.ts";
import { RoleWorkers } from "../role_workers.ts";
import { fitting, withinRoom } from "./room.ts";
import { type RowLength, rowLengths } from "./row_lengths.ts";
import type { Turns } from "../turns.ts";
import {
  type CheckpointNote,
  ofGroup,
  type RecordedRow,
  VersionChain,
  type VersionNote,
} from "./version_chain.ts";

export type PolicyTrainerOptions = {
  operator: Operator;
  /** The worker group, and with it the chain of versions. Absent: the policy's. */
  group?: string;
  /** The block of the configuration with its numerics. */
  block?: TrainerBlock;
  /** The head of its model, if it is not a vocabulary. */
  head?: ModelHead;
  artifacts: ArtifactStore;
  clock: Clock;
  /** The numerics that the ready group reports. */
  numerics: (microBatchTokensMax: number) => Promise<Numerics>;
  /** What earlier engines recorded about versions, checkpoints and replans, in order. */
  recorded: RecordedRow[];
  /** Where checkpoints go that no stage requested. */
  checkpoints_dir: string;
  /** recovery.allow_replan. */
  allow_replan?: boolean;
  /** trainer.non_finite_max. */
  non_finite_max?: number;
  /** How the previous engine ended, if there was one. */
  restart?: RestartCause;
  /** The turns of everybody who calls the operator. Absent: nobody else does. */
  turns?: Turns;
};

type TrainerRole = typeof trainerRole;
type TrainerOperation = OperationOf<TrainerRole>;

/**
 * What a batch is trained with.
 * @internal
 */
type Training = {
  policy: Policy;
  batch: ArtifactRef;
  loss: ArtifactRef;
  optimizer: Optimizer;
  micro_batch_tokens_max: number;
  mismatch?: RatioBounds | null;
};

/**
 * A directory, how an adapter is written there, and whether it gets the moving average of the
 * weights in their place.
 */
export type PublishTarget = { dir: string; form: "merged" | "adapter"; average?: boolean };

/**
 * A trainer from the point of view of stages: the policy's or the value model's. Every operation
 * names the version that it needs, and `Materialiser` loads it first if necessary. If the device
 * has no room for a micro-batch, half its size is tried and recorded.
 */
export class PolicyTrainer {
  readonly #options: PolicyTrainerOptions;
  readonly #workers: RoleWorkers<TrainerRole>;
  readonly #artifacts: ArtifactStore;
  readonly #chain: VersionChain;
  readonly #materialiser: Materialiser;
  readonly #models: ModelDigests;
  /**
   * Directories of checkpoints that are being written. They are not recorded yet, and nothing may
   * remove them.
   */
  readonly writing = new Set<string>();
  /** The policy that this engine trained or restored last. */
  #newest: Policy | null = null;

  /** For one group of ranks. Starts nothing until the first operation. */
  constructor(options: PolicyTrainerOptions) {
    const { operator, group, artifacts, clock, checkpoints_dir, restart = "engine_lost", turns } =
      options;
    const recorded = ofGroup(options.recorded, group);
    this.#options = options;
    this.#workers = new RoleWorkers(trainerRole, [operator], turns);
    this.#artifacts = artifacts;
    const chain = this.#chain = new VersionChain(artifacts, recorded);
    this.#models = new ModelDigests(artifacts, options.recorded);
    // A start's first version was trained by another run.
    const loaded_before = chain.hasNamedVersion();
    const worldSize = async () => (await options.numerics(1)).world_size;
    const { writing } = this;
    const places = { checkpoints_dir, writing, restart, loaded_before };
    this.#materialiser = new Materialiser({ operator, chain, clock, worldSize, ...places });
  }

  /**
   * The first version of a chain: a model directory with a fresh optimizer. Changes nothing in the
   * trainer.
   */
  async base(
    modelPath: string,
    optimizer: Optimizer,
    caller: Caller,
  ): Promise<{ policy: Policy; note: VersionNote }> {
    const { answers: [output] } = await this.#askStateless(
      "inspect_model",
      { dir: modelPath },
      caller,
    );
    const recorded = await this.#models.digestOf(modelPath);
    if (recorded !== null && recorded !== output.digest) {
      throw new BadDataError(
        `Cannot open model '${modelPath}' because its weights differ from those that the run, or ` +
          `the one that it started from, recorded: their digest is ${
            output.digest.slice(0, 12)
          }, ` +
          `recorded ${recorded.slice(0, 12)}. Fix: restore the recorded weights, then resume; or ` +
          "start a new run",
        { dir: modelPath, digest: output.digest, recorded },
      );
    }
    const { head = null } = this.#options;
    const { lora } = await this.#options.numerics(1);
    const record = await this.#artifacts.putJson(
      { kind: "base", model_digest: output.digest, optimizer, head, lora },
    );
    const note = { ...this.#mark, record, model_path: modelPath, number: 0, steps: [] };
    this.#chain.add(record.sha256, note);
    this.#models.add(note);
    return { policy: { version: record.sha256, record, number: 0, model_path: modelPath }, note };
  }

  /** Trains one batch. The new version gets its name before the work starts. */
  async train(
    input: Training,
    caller: Caller,
  ): Promise<{ policy: Policy; note: VersionNote }> {
    return await this.#fitting(
      input,
      caller,
      (micro_batch_tokens_max) => this.#train({ ...input, micro_batch_tokens_max }, caller),
    );
  }

  async #train(
    { policy, batch, loss, optimizer, micro_batch_tokens_max, mismatch = null }: Training,
    caller: Caller,
  ): Promise<{ policy: Policy; note: VersionNote }> {
    const numerics = await this.#options.numerics(micro_batch_tokens_max);
    const inputs = { parent: policy.version, batch, loss, optimizer, numerics };
    const identity = { kind: "trained", ...inputs };
    const bytes = new TextEncoder().encode(canonicalJson(identity));
    const record = { sha256: sha256Hex(bytes), bytes: bytes.byteLength };
    // Written while the step runs, because nothing reads it before the result is recorded.
    const kept = this.#artifacts.put(bytes);
    kept.catch(() => undefined); // Awaited below.
    const trained = { ...policy, version: record.sha256, record, number: policy.number + 1 };
    const { non_finite_max = null } = this.#options;
    const args = {
      from: policy.version,
      to: trained.version,
      batch,
      loss,
      optimizer,
      micro_batch_tokens_max,
      ...stepCut(numerics),
      mismatch,
      non_finite_max,
    };
    const { answers: [{ steps }] } = await this.#resident(policy.version, caller, async () => {
      const reply = await withinRoom(caller, (watched) => this.#ask("train", args, watched));
      if (!isNotResident(reply)) this.#newest = trained; // Before the next turn: it may be `saveNow`.
      return reply;
    });
    await kept;
    const { model_path, number } = trained;
    const note = { ...this.#mark, record, model_path, number, steps };
    this.#chain.add(trained.version, note);
    return { policy: trained, note };
  }

  /**
   * Scores the tokens of a batch, one column each: with `policy`, or for `ref_logp` with the
   * reference model.
   */
  async score(
    input: {
      policy: Policy;
      batch: ArtifactRef;
      columns: ScoredColumn[];
      reference_path: string | null;
      reference_offload: boolean;
      micro_batch_tokens_max: number;
    },
    caller: Caller,
  ): Promise<Record<string, ArtifactRef>> {
    return await this.#fitting(input, caller, async (micro_batch_tokens_max) => {
      const { policy, ...rest } = input;
      const cut = stepCut(await this.#options.numerics(micro_batch_tokens_max));
      const reference_digest = await this.#models.digestOf(rest.reference_path);
      const request = { ...rest, reference_digest, micro_batch_tokens_max, ...cut };
      const args = { version: policy.version, ...request };
      const { answers: [{ columns }], blobs } = await this.#resident(
        policy.version,
        caller,
        () => withinRoom(caller, (watched) => this.#ask("score", args, watched)),
      );
      const refs = await Promise.all(blobs.map((blob) => this.#artifacts.put(blob)));
      return Object.fromEntries(columns.map((column, i) => [column, refs[i]!]));
    });
  }

  /** The loss of a batch under `policy`, and its metrics. Trains nothing. */
  async evaluate(
    input: {
      policy: Policy;
      batch: ArtifactRef;
      loss: ArtifactRef;
      micro_batch_tokens_max: number;
    },
    caller: Caller,
  ): Promise<EvaluatedBatch> {
    return await this.#fitting(input, caller, async (micro_batch_tokens_max) => {
      const { policy, ...rest } = input;
      const cut = stepCut(await this.#options.numerics(micro_batch_tokens_max));
      const args = { version: policy.version, ...rest, micro_batch_tokens_max, ...cut };
      const { answers: [evaluated] } = await this.#resident(
        policy.version,
        caller,
        () => withinRoom(caller, (watched) => this.#ask("evaluate", args, watched)),
      );
      return evaluated;
    });
  }

  /**
   * Runs `work` with the current micro-batches. If the device has no room for them, uses smaller
   * ones from here on.
   */
  async #fitting<T>(
    { micro_batch_tokens_max: configured }: { micro_batch_tokens_max: number },
    caller: Caller,
    work: (microBatchTokensMax: number) => Promise<T>,
  ): Promise<T> {
    const { block = "trainer", allow_replan: allowed = true } = this.#options;
    const { replans } = this.#chain;
    return await fitting(work, { configured, replans, block, allowed, caller });
  }

  /**
   * Writes the weights of `policy` as a plain Hugging Face directory with a manifest. `form`, or
   * else the configuration, decides whether an adapter is merged. Sets aside a file in the
   * directory's place.
   */
  async publish(
    policy: Policy,
    target: string | PublishTarget,
    caller: Caller,
  ): Promise<Publication> {
    const { dir, form = null, average = false } = typeof target === "string"
      ? { dir: target }
      : target;
    const args = { version: policy.version, dir, form, average };
    const { answers: [publication] } = await this.#resident(policy.version, caller, async () => {
      // In its turn: else the room that another publication made, and writes to, is set aside.
      for (const { from, to } of await makeRoomFor(dir)) {
        caller.emit?.({ log: `${from} is a file, not a directory. It was set aside as ${to}` });
      }
      return await this.#ask("publish", args, caller);
    });
    return publication;
  }

  /** Writes a checkpoint. It counts once its note is recorded with the stage's result. */
  async save(
    policy: Policy,
    { dir, round, metric = null, metric_name }:
      & { dir: string; round: number | null }
      & Partial<Pick<CheckpointNote, "metric" | "metric_name">>,
    caller: Caller,
  ): Promise<CheckpointNote> {
    this.writing.add(dir);
    try {
      const { answers } = await this.#resident(
        policy.version,
        caller,
        () => this.#ask("save", { version: policy.version, dir }, caller),
      );
      const saved = { ...wholeCheckpoint(answers), number: policy.number, round, metric };
      const named = metric !== null && metric_name !== undefined && { metric_name };
      const checkpoint = { ...this.#mark, ...saved, ...named };
      this.#chain.addCheckpoint(checkpoint);
      return checkpoint;
    } finally {
      this.writing.delete(dir);
    }
  }

  /**
   * Saves the newest policy after the current operation, for a machine that is about to be
   * reclaimed. Null if it is already saved or not held: the record is enough to rebuild it.
   */
  async saveNow(caller: Caller): Promise<CheckpointNote | null> {
    return await this.#inTurn(caller, async () => {
      const policy = this.#newest;
      if (policy === null || this.checkpoints().some(({ version }) => version === policy.version)) {
        return null;
      }
      const name = `${checkpointName(policy)}-now-${crypto.randomUUID().slice(0, 8)}`;
      const args = { version: policy.version, dir: `${this.#options.checkpoints_dir}/${name}` };
      this.writing.add(args.dir);
      try {
        const reply = await this.#ask("save", args, caller);
        if (isNotResident(reply)) return null;
        const whole = wholeCheckpoint(reply.answers);
        const { number } = policy;
        const checkpoint = { ...this.#mark, ...whole, number, round: null, metric: null };
        await caller.record("note/checkpoint", policy.version, checkpoint);
        this.#chain.addCheckpoint(checkpoint);
        return checkpoint;
      } finally {
        this.writing.delete(args.dir);
      }
    });
  }

  /** Creates a small model. */
  async createModel(
    input: { recipe: string; seed: number; dir: string },
    caller: Caller,
  ): Promise<{ dir: string; digest: string }> {
    const { answers: [created] } = await this.#askStateless("create_model", input, caller);
    return created;
  }

  /**
   * Tokens of rows under a model's tokenizer, and the positions that the model has. Needs no
   * version.
   */
  async measureRows(
    input: {
      model_path: string;
      use: "prompt" | "completion" | "preference";
      rows: ArtifactRef;
      chat: Chat | null;
    },
    caller: Caller,
  ): Promise<
    { model_tokens_max: number | null; tokens: RowLength[]; refused?: RefusedRow }
  > {
    const { answers: [{ rows, model_tokens_max, refused }], blobs } = await this.#askStateless(
      "measure_rows",
      input,
      caller,
    );
    const tokens = rowLengths(blobs[0] ?? new Uint8Array(), rows);
    return { model_tokens_max, tokens, refused };
  }

  /** Describes an algorithm's file, after trying all of it. Needs no version. */
  async openAlgorithm(algorithm: ArtifactRef, caller: Caller): Promise<AlgorithmDescription> {
    const { answers: [described] } = await this.#askStateless(
      "open_algorithm",
      { algorithm },
      caller,
    );
    return described;
  }

  /** What an algorithm's file assigns to a round. Pure, and needs no version. */
  async credit(
    input: { algorithm: ArtifactRef; round: ArtifactRef },
    caller: Caller,
  ): Promise<AssignedCredit> {
    const { blobs } = await this.#askStateless("credit", input, caller);
    return AssignedCredit.parse(JSON.parse(new TextDecoder().decode(blobs[0])));
  }

  /** Checkpoints this chain can start from, in the order they were recorded. */
  checkpoints(): CheckpointNote[] {
    return this.#chain.checkpoints();
  }

  /** Checkpoints that the run started from, which nothing drops. */
  starts(): CheckpointNote[] {
    return this.#chain.starts();
  }

  /** Forgets a checkpoint whose deletion was recorded. */
  dropped(version: string): void {
    this.#chain.drop(version);
  }

  /** The mark of a row's chain. None for the policy's. */
  get #mark(): { group?: string } {
    const { group } = this.#options;
    return group === undefined ? {} : { group };
  }

  /** The caller, with the mark on every row that it records. */
  #marking(caller: Caller): Caller {
    if (this.#options.group === undefined) return caller;
    const record: Caller["record"] = (kind, key, value) =>
      caller.record(kind, key, { ...this.#mark, ...value as Record<string, unknown> });
    return { ...callOptions(caller), record, emit: (emission) => caller.emit?.(emission) };
  }

  #ask<Op extends TrainerOperation>(
    op: Op,
    args: ArgumentsOf<TrainerRole, Op>,
    options: CallOptions,
  ): Promise<Reply<TrainerRole, Op>> {
    return ask(this.#options.operator, [trainerRole, op], args, options);
  }

  /** Calls an operation that needs no version. */
  #askStateless<
    Op extends "create_model" | "credit" | "inspect_model" | "measure_rows" | "open_algorithm",
  >(
    op: Op,
    args: ArgumentsOf<TrainerRole, Op>,
    caller: Caller,
  ): Promise<Answered<TrainerRole, Op>> {
    return this.#workers.ask(op, args, this.#marking(caller));
  }

  #inTurn<T>(caller: Caller, work: () => Promise<T>): Promise<T> {
    return this.#workers.turn(this.#marking(caller), work);
  }

  #resident<Op extends TrainerOperation>(
    version: string,
    caller: Caller,
    operate: () => Promise<Reply<TrainerRole, Op>>,
  ): Promise<Answered<TrainerRole, Op>> {
    type Answer = Answered<TrainerRole, Op> | NotResident;
    const bring = async (held: string | null) => {
      await this.#materialiser.bring(version, held, this.#marking(caller));
      const { record, number, model_path } = this.#chain.note(version);
      // A redone version is also worth saving.
      if (number > 0) this.#newest ??= { version, record, number, model_path };
    };
    return this.#inTurn(
      caller,
      () => askResident(operate as () => Promise<Answer>, { bring }),
    );
  }
}
