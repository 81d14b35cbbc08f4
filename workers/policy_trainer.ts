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
  recordedVersion,
  type ScoredColumn,
  stepCut,
  type VersionRecord,
} from "../data/mod.ts";
import { type ArtifactStore, canonicalJson, type Clock, InfrastructureError, sha256Hex } from "../engine/mod.ts";
import {
  type Answered,
  type AnswerOf,
  type ArgumentsOf,
  ask,
  type Asked,
  askResident,
  isNotResident,
  type OperationOf,
} from "./ask.ts";
import { type CallOptions, callOptions } from "./call.ts";
import { makeRoomFor } from "./checkpoint_files.ts";
import { checkpointName, Materialiser } from "./materialiser.ts";
import { ModelDigests } from "./model_digests.ts";
import type { Caller, Operator } from "./operator.ts";
import { type Publication, wholeCheckpoint } from "./model_files.ts";
import type { Loss, Recovery, RestartCause } from "./recovery.ts";
import { microBatchTokensMax, type TrainerBlock } from "./replan.ts";
import type { NotResident } from "./roles/role.ts";
import { type EvaluatedBatch, trainerRole } from "./roles/trainer.ts";
import { askedRoom, NoRoom, smallerCut } from "./room.ts";
import { type CheckpointNote, ofGroup, type RecordedRow, VersionChain, type VersionNote } from "./version_chain.ts";

type TrainerRole = typeof trainerRole;
type TrainerOperation = OperationOf<TrainerRole>;

export type PolicyTrainerOptions = {
  operator: Operator;
  /** The worker group, and with it the chain of versions. Left out: the policy's. */
  group?: string;
  /** The block of the configuration that its numerics are in. */
  block?: TrainerBlock;
  /** What its model ends in, if not in a vocabulary. */
  head?: ModelHead;
  artifacts: ArtifactStore;
  clock: Clock;
  /** What the ready group says of its numerics. */
  numerics: (microBatchTokensMax: number) => Promise<Numerics>;
  /** What earlier engines recorded of versions, checkpoints and replans, in order. */
  recorded: RecordedRow[];
  /** Where a checkpoint goes that no stage asked for. */
  checkpointsDir: string;
  /** recovery.allow_replan. */
  allowReplan?: boolean;
  /** trainer.non_finite_max. */
  nonFiniteMax?: number;
  /** How the previous engine ended, if there was one. */
  restart?: RestartCause;
};

/** A directory, and how an adapter is written there. */
export type PublishTarget = { dir: string; form: "merged" | "adapter" };

/**
 * A trainer as stages see it, the policy's or the value model's: every operation names the version it needs, and a group that does not hold it is brought
 * there first (`Materialiser`). Where the device has no room for a micro-batch, half of it is tried, and recorded.
 */
export class PolicyTrainer {
  readonly #options: PolicyTrainerOptions;
  readonly #operator: Operator;
  readonly #artifacts: ArtifactStore;
  readonly #chain: VersionChain;
  readonly #materialiser: Materialiser;
  readonly #models: ModelDigests;
  /** Directories of checkpoints that are being written: not recorded yet, and nobody's to remove. */
  readonly writing = new Set<string>();
  #tail: Promise<unknown> = Promise.resolve();
  /** The one that this engine trained last, or brought back. */
  #newest: Policy | null = null;

  /** For one group of ranks. Starts nothing until the first operation. */
  constructor(options: PolicyTrainerOptions) {
    const { operator, group, artifacts, clock, checkpointsDir, restart = "engine_lost" } = options;
    const recorded = ofGroup(options.recorded, group);
    this.#options = options;
    this.#operator = operator;
    this.#artifacts = artifacts;
    const chain = this.#chain = new VersionChain(artifacts, recorded);
    this.#models = new ModelDigests(artifacts, options.recorded);
    const loadedBefore = recorded.some((row) => row.kind === "note/version");
    const worldSize = async () => (await options.numerics(1)).world_size;
    const places = { checkpointsDir, writing: this.writing };
    this.#materialiser = new Materialiser({ operator, chain, clock, worldSize, ...places, restart, loadedBefore });
  }

  /** The first version of a chain: a model directory with a fresh optimizer. Changes nothing in the trainer. */
  async base(modelPath: string, optimizer: Optimizer, caller: Caller): Promise<{ policy: Policy; note: VersionNote }> {
    const output = await this.#alone("inspect_model", { dir: modelPath }, caller);
    const { head = null } = this.#options;
    const { lora } = await this.#options.numerics(1);
    const record = await this.#artifacts.putJson(
      recordedVersion({ kind: "base", model_digest: output.digest, optimizer, head, lora }),
    );
    const note = { ...this.#mark, record, model_path: modelPath, number: 0, steps: [] };
    this.#chain.add(record.sha256, note);
    this.#models.add(note);
    return { policy: { version: record.sha256, record, number: 0, model_path: modelPath }, note };
  }

  /** Trains one batch: the version that it makes is named before the work starts. */
  async train(
    input: {
      policy: Policy;
      batch: ArtifactRef;
      loss: ArtifactRef;
      optimizer: Optimizer;
      micro_batch_tokens_max: number;
      mismatch?: RatioBounds | null;
    },
    caller: Caller,
  ): Promise<{ policy: Policy; note: VersionNote }> {
    return await this.#fitting(
      input,
      caller,
      (micro_batch_tokens_max) => this.#train({ ...input, micro_batch_tokens_max }, caller),
    );
  }

  async #train(
    { policy, batch, loss, optimizer, micro_batch_tokens_max, mismatch = null }: Parameters<PolicyTrainer["train"]>[0],
    caller: Caller,
  ): Promise<{ policy: Policy; note: VersionNote }> {
    const numerics = await this.#options.numerics(micro_batch_tokens_max);
    const identity: VersionRecord = { kind: "trained", parent: policy.version, batch, loss, optimizer, numerics };
    const bytes = new TextEncoder().encode(canonicalJson(recordedVersion(identity)));
    const record = { sha256: sha256Hex(bytes), bytes: bytes.byteLength };
    const kept = this.#artifacts.put(bytes); // Nobody reads it before the result is recorded: written while the step runs.
    kept.catch(() => undefined); // Told below.
    const made = { ...policy, version: record.sha256, record, number: policy.number + 1 };
    const { nonFiniteMax: non_finite_max = null } = this.#options;
    const args = {
      ...{ from: policy.version, to: made.version, batch, loss, optimizer, micro_batch_tokens_max },
      ...{ ...stepCut(numerics), mismatch, non_finite_max },
    };
    const { answers: [{ steps }] } = await this.#resident(policy.version, caller, async () => {
      const asked = await askedRoom(caller, (watched) => this.#ask("train", args, watched));
      if (!isNotResident(asked)) this.#newest = made; // Before the next turn: it may be `saveNow`.
      return asked;
    });
    await kept;
    const note = { ...this.#mark, record, model_path: policy.model_path, number: made.number, steps };
    this.#chain.add(made.version, note);
    return { policy: made, note };
  }

  /** Columns of a batch: what `policy`, or for `ref_logp` the reference model, says of its tokens. */
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
      const args = { version: policy.version, ...rest, reference_digest, micro_batch_tokens_max, ...cut };
      const { answers: [{ columns }], blobs } = await this.#resident(
        policy.version,
        caller,
        () => askedRoom(caller, (watched) => this.#ask("score", args, watched)),
      );
      const refs = await Promise.all(blobs.map((blob) => this.#artifacts.put(blob)));
      return Object.fromEntries(columns.map((column, i) => [column, refs[i]!]));
    });
  }

  /** The loss of a batch under `policy`, and its metrics. Trains nothing. */
  async evaluate(
    input: { policy: Policy; batch: ArtifactRef; loss: ArtifactRef; micro_batch_tokens_max: number },
    caller: Caller,
  ): Promise<EvaluatedBatch> {
    return await this.#fitting(input, caller, async (micro_batch_tokens_max) => {
      const { policy, ...rest } = input;
      const cut = stepCut(await this.#options.numerics(micro_batch_tokens_max));
      const args = { version: policy.version, ...rest, micro_batch_tokens_max, ...cut };
      const { answers: [evaluated] } = await this.#resident(
        policy.version,
        caller,
        () => askedRoom(caller, (watched) => this.#ask("evaluate", args, watched)),
      );
      return evaluated;
    });
  }

  /** Runs `work` with the micro-batches of now; where the device has no room for them, with smaller ones from here on. */
  async #fitting<T>(
    { micro_batch_tokens_max: configured }: { micro_batch_tokens_max: number },
    caller: Caller,
    work: (microBatchTokensMax: number) => Promise<T>,
  ): Promise<T> {
    const { block = "trainer", allowReplan: allowed = true } = this.#options;
    for (;;) {
      const from = microBatchTokensMax(configured, this.#chain.replans, block);
      try {
        return await work(from);
      } catch (error) {
        if (!(error instanceof NoRoom)) throw error;
        const replan = smallerCut(error, { from, key: caller.key, allowed, block });
        await caller.record("note/replan", caller.key, replan);
        this.#chain.replans.push(replan);
        caller.emit?.({ log: `no room on the device: ${replan.field} is ${replan.to} from here on, it was ${from}` });
      }
    }
  }

  /**
   * Writes the weights of `policy` as a plain Hugging Face directory with a manifest; those of an adapter merged or alone, as `form`
   * says or else the configuration. A file where a directory goes is set aside.
   */
  async publish(policy: Policy, target: string | PublishTarget, caller: Caller): Promise<Publication> {
    const form: PublishTarget["form"] | null = typeof target === "string" ? null : target.form;
    const args = { version: policy.version, dir: typeof target === "string" ? target : target.dir, form };
    for (const { from, to } of await makeRoomFor(args.dir)) {
      caller.emit?.({ log: `${from} is a file where a directory goes. It was set aside as ${to}` });
    }
    const { answers: [publication] } = await this.#resident(
      policy.version,
      caller,
      () => this.#ask("publish", args, caller),
    );
    return publication;
  }

  /** Writes a checkpoint. It counts once its note is recorded with the stage's result. */
  async save(
    policy: Policy,
    { dir, round, metric = null }: { dir: string; round: number | null; metric?: number | null },
    caller: Caller,
  ): Promise<CheckpointNote> {
    const args = { version: policy.version, dir };
    this.writing.add(dir);
    try {
      const { answers } = await this.#resident(policy.version, caller, () => this.#ask("save", args, caller));
      const checkpoint = { ...this.#mark, ...wholeCheckpoint(answers), number: policy.number, round, metric };
      this.#chain.addCheckpoint(checkpoint);
      return checkpoint;
    } finally {
      this.writing.delete(dir);
    }
  }

  /**
   * Saves the newest policy between two rounds, after the operation that runs now: for a machine that is about to go. Null if it
   * is saved already, or if the group does not hold it: what is recorded is enough to make it again.
   */
  async saveNow(caller: Caller): Promise<CheckpointNote | null> {
    return await this.#exclusive(caller, async () => {
      const policy = this.#newest;
      if (policy === null || this.checkpoints().some(({ version }) => version === policy.version)) return null;
      const name = `${checkpointName(policy)}-now-${crypto.randomUUID().slice(0, 8)}`;
      const args = { version: policy.version, dir: `${this.#options.checkpointsDir}/${name}` };
      this.writing.add(args.dir);
      try {
        const asked = await this.#ask("save", args, caller);
        if (isNotResident(asked)) return null;
        const whole = wholeCheckpoint(asked.answers);
        const checkpoint = { ...this.#mark, ...whole, number: policy.number, round: null, metric: null };
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
    return await this.#alone("create_model", input, caller);
  }

  /** Tokens of rows under a model's tokenizer, and the positions that the model has. Needs no version. */
  async measureRows(
    input: { model_path: string; use: "prompt" | "completion" | "preference"; rows: ArtifactRef; chat: Chat | null },
    caller: Caller,
  ): Promise<{ model_tokens_max: number | null; tokens: { prompt: number; sequence: number }[] }> {
    const { answers: [{ rows, model_tokens_max }], blobs } = await this.#exclusive(
      caller,
      () => this.#ask("measure_rows", input, caller),
    );
    const bytes = blobs[0] ?? new Uint8Array();
    if (bytes.length !== rows * 8) {
      throw new InfrastructureError(
        `Cannot read the lengths of ${rows} rows because the trainer sent ${bytes.length} bytes: ${rows * 8} expected`,
        { rows, bytes: bytes.length },
      );
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const at = (place: number) => view.getInt32(4 * place, true);
    const tokens = Array.from({ length: rows }, (_, row) => ({ prompt: at(2 * row), sequence: at(2 * row + 1) }));
    return { model_tokens_max, tokens };
  }

  /** What an algorithm's file reads, after all of it was tried. Needs no version. */
  async openAlgorithm(algorithm: ArtifactRef, caller: Caller): Promise<AlgorithmDescription> {
    return await this.#alone("open_algorithm", { algorithm }, caller);
  }

  /** What an algorithm's file assigns to a round. Pure, and needs no version. */
  async credit(input: { algorithm: ArtifactRef; round: ArtifactRef }, caller: Caller): Promise<AssignedCredit> {
    const { blobs } = await this.#exclusive(caller, () => this.#ask("credit", input, caller));
    return AssignedCredit.parse(JSON.parse(new TextDecoder().decode(blobs[0])));
  }

  /** Checkpoints this chain can start from, in the order they were recorded. */
  checkpoints(): CheckpointNote[] {
    return this.#chain.checkpoints();
  }

  /** Forgets a checkpoint whose deletion was recorded. */
  dropped(version: string): void {
    this.#chain.drop(version);
  }

  /** What rows say of whose chain they are. */
  get #mark(): { group?: string } {
    const { group } = this.#options;
    return group === undefined ? {} : { group };
  }

  /** The caller, whose rows about versions that are brought back say of whose chain they are. */
  #marking(caller: Caller): Caller {
    if (this.#options.group === undefined) return caller;
    const record: Caller["record"] = (kind, key, value) =>
      caller.record(kind, key, { ...this.#mark, ...value as Record<string, unknown> });
    return { ...callOptions(caller), record, emit: (emission) => caller.emit?.(emission) };
  }

  #ask<Op extends TrainerOperation>(op: Op, args: ArgumentsOf<TrainerRole, Op>, options: CallOptions) {
    return ask(this.#operator, [trainerRole, op], args, options);
  }

  /** An operation that needs no version: what rank 0 answers. */
  async #alone<Op extends "create_model" | "inspect_model" | "open_algorithm">(
    op: Op,
    args: ArgumentsOf<TrainerRole, Op>,
    caller: Caller,
  ): Promise<AnswerOf<TrainerRole, Op>> {
    const { answers } = await this.#exclusive(caller, () => this.#ask(op, args, caller)) as Answered<TrainerRole, Op>;
    return answers[0];
  }

  /** Materialise and operate must not be cut in two by another operation: one at a time. */
  #exclusive<T>(caller: Caller, work: () => Promise<T>): Promise<T> {
    const whole = async () => {
      const done = await work();
      const loss = this.#operator.takeLoss?.() ?? null; // One that cost no version.
      if (loss) await this.#marking(caller).record("recovery", caller.key, restarted(loss));
      return done;
    };
    const turn = this.#tail.then(whole, whole);
    this.#tail = turn.catch(() => undefined);
    return turn;
  }

  #resident<Op extends TrainerOperation>(
    version: string,
    caller: Caller,
    operate: () => Promise<Asked<TrainerRole, Op>>,
  ): Promise<Answered<TrainerRole, Op>> {
    type Answer = Answered<TrainerRole, Op> | NotResident;
    const bring = async (held: string | null) => {
      await this.#materialiser.bring(version, held, this.#marking(caller));
      const { record, number, model_path } = this.#chain.note(version);
      if (number > 0) this.#newest ??= { version, record, number, model_path }; // Redone, it is worth saving too.
    };
    return this.#exclusive(caller, () => askResident(operate as () => Promise<Answer>, { bring }));
  }
}

function restarted(loss: Loss): Recovery {
  return { ...loss, action: "restart", version: null, batches_redone: 0 };
}
