import {
  AlgorithmDescription,
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
  VersionRecord,
} from "../data/mod.ts";
import { type ArtifactStore, canonicalJson, type Clock, InfrastructureError, sha256Hex } from "../engine/mod.ts";
import { type CallOptions, callOptions } from "./call.ts";
import { makeRoomFor } from "./checkpoint_files.ts";
import { checkpointName, Materialiser } from "./materialiser.ts";
import { ModelDigests } from "./model_digests.ts";
import type { Caller, Operator } from "./operator.ts";
import { EvaluatedBatch, NotResident, OPERATIONS, Publication, wholeCheckpoint } from "./operations.ts";
import type { Loss, Recovery, RestartCause } from "./recovery.ts";
import { microBatchTokensMax, type TrainerBlock } from "./replan.ts";
import { askedRoom, NoRoom, smallerCut } from "./room.ts";
import { type CheckpointNote, ofGroup, type RecordedRow, VersionChain, type VersionNote } from "./version_chain.ts";

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
  /** How the engine before this one ended, if there was one. */
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
    const output = OPERATIONS.trainer.inspect_model.output.parse(
      await this.#exclusive(caller, () => this.#call("inspect_model", { dir: modelPath }, caller)),
    );
    const { head } = this.#options;
    const { lora } = await this.#options.numerics(1);
    const unusual = { ...(head && { head }), ...(lora && { lora }) };
    const record = await this.#artifacts.putJson(
      VersionRecord.parse({ kind: "base", model_digest: output.digest, optimizer, ...unusual }),
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
      mismatch?: RatioBounds;
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
    { policy, batch, loss, optimizer, micro_batch_tokens_max, mismatch }: Parameters<PolicyTrainer["train"]>[0],
    caller: Caller,
  ): Promise<{ policy: Policy; note: VersionNote }> {
    const numerics = await this.#options.numerics(micro_batch_tokens_max);
    const identity = VersionRecord.parse({ kind: "trained", parent: policy.version, batch, loss, optimizer, numerics });
    const bytes = new TextEncoder().encode(canonicalJson(identity));
    const record = { sha256: sha256Hex(bytes), bytes: bytes.byteLength };
    const kept = this.#artifacts.put(bytes); // Nobody reads it before the result is recorded: written while the step runs.
    kept.catch(() => undefined); // Told below.
    const made = { ...policy, version: record.sha256, record, number: policy.number + 1 };
    const { nonFiniteMax: non_finite_max } = this.#options;
    const args = {
      ...{ from: policy.version, to: made.version, batch, loss, optimizer, micro_batch_tokens_max },
      ...stepCut(numerics),
      ...(mismatch && { mismatch }),
      ...(non_finite_max && { non_finite_max }),
    };
    const output = await this.#resident(policy.version, caller, async () => {
      const answer = await askedRoom(caller, (watched) => this.#call("train", args, watched));
      if (!NotResident.safeParse(answer).success) this.#newest = made; // Before the next turn: it may be `saveNow`.
      return answer;
    });
    const { steps } = OPERATIONS.trainer.train.output.options[1].parse(output);
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
      reference_offload?: boolean;
      micro_batch_tokens_max: number;
    },
    caller: Caller,
  ): Promise<Record<string, ArtifactRef>> {
    return await this.#fitting(input, caller, async (micro_batch_tokens_max) => {
      const { policy, ...rest } = input;
      const cut = stepCut(await this.#options.numerics(micro_batch_tokens_max));
      const reference_digest = await this.#models.digestOf(rest.reference_path);
      const known = { ...rest, ...(reference_digest && { reference_digest }) };
      const args = { version: policy.version, ...known, micro_batch_tokens_max, ...cut };
      let blobs: Uint8Array[] = [];
      const output = await this.#resident(policy.version, caller, () =>
        askedRoom(caller, async (watched) => {
          const answer = await this.#operator.call("score", args, watched);
          blobs = answer.blobs;
          return answer.outputs[0];
        }));
      const { columns } = OPERATIONS.trainer.score.output.options[1].parse(output);
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
      const output = await this.#resident(
        policy.version,
        caller,
        () => askedRoom(caller, (watched) => this.#call("evaluate", args, watched)),
      );
      return EvaluatedBatch.parse(output);
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
    const args = { version: policy.version, ...(typeof target === "string" ? { dir: target } : target) };
    for (const { from, to } of await makeRoomFor(args.dir)) {
      caller.emit?.({ log: `${from} is a file where a directory goes. It was set aside as ${to}` });
    }
    return Publication.parse(await this.#resident(policy.version, caller, () => this.#call("publish", args, caller)));
  }

  /** Writes a checkpoint. It counts once its note is recorded with the stage's result. */
  async save(
    policy: Policy,
    { dir, round, metric = null }: { dir: string; round: number | null; metric?: number | null },
    caller: Caller,
  ): Promise<CheckpointNote> {
    const args = { version: policy.version, dir };
    const outputs: unknown[] = [];
    this.writing.add(dir);
    try {
      await this.#resident(policy.version, caller, async () => {
        const answer = await this.#operator.call("save", args, caller);
        outputs.splice(0, outputs.length, ...answer.outputs);
        return answer.outputs[0];
      });
      const checkpoint = { ...this.#mark, ...wholeCheckpoint(outputs), number: policy.number, round, metric };
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
        const { outputs } = await this.#operator.call("save", args, caller);
        if (NotResident.safeParse(outputs[0]).success) return null;
        const whole = wholeCheckpoint(outputs);
        const checkpoint = { ...this.#mark, ...whole, number: policy.number, round: null, metric: null };
        await caller.record("note/checkpoint", policy.version, checkpoint);
        this.#chain.addCheckpoint(checkpoint);
        return checkpoint;
      } finally {
        this.writing.delete(args.dir);
      }
    });
  }

  /** Makes a small model on the spot. */
  async createModel(
    input: { recipe: string; seed: number; dir: string },
    caller: Caller,
  ): Promise<{ dir: string; digest: string }> {
    return OPERATIONS.trainer.create_model.output.parse(
      await this.#exclusive(caller, () => this.#call("create_model", input, caller)),
    );
  }

  /** Tokens of rows under a model's tokenizer, and the positions that the model has. Needs no version. */
  async measureRows(
    input: { model_path: string; use: "prompt" | "completion" | "preference"; rows: ArtifactRef; chat?: Chat },
    caller: Caller,
  ): Promise<{ model_tokens_max: number | null; tokens: { prompt: number; sequence: number }[] }> {
    const { outputs, blobs } = await this.#exclusive(caller, () => this.#operator.call("measure_rows", input, caller));
    const { rows, model_tokens_max } = OPERATIONS.trainer.measure_rows.output.parse(outputs[0]);
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
    return AlgorithmDescription.parse(
      await this.#exclusive(caller, () => this.#call("open_algorithm", { algorithm }, caller)),
    );
  }

  /** What an algorithm's file assigns to a round. Pure, and needs no version. */
  async credit(input: { algorithm: ArtifactRef; round: ArtifactRef }, caller: Caller): Promise<AssignedCredit> {
    const { blobs } = await this.#exclusive(caller, () => this.#operator.call("credit", input, caller));
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

  async #call(op: keyof typeof OPERATIONS.trainer, args: unknown, options: CallOptions): Promise<unknown> {
    return (await this.#operator.call(op, args, options)).outputs[0];
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

  #resident(version: string, caller: Caller, operate: () => Promise<unknown>): Promise<unknown> {
    return this.#exclusive(caller, async () => {
      const first = await operate();
      const refused = NotResident.safeParse(first);
      if (!refused.success) return first;
      await this.#materialiser.bring(version, refused.data.not_resident, this.#marking(caller));
      const { record, number, model_path } = this.#chain.note(version);
      if (number > 0) this.#newest ??= { version, record, number, model_path }; // Redone, it is worth saving too.
      const second = await operate();
      if (NotResident.safeParse(second).success) {
        throw new InfrastructureError(
          `Cannot use version ${version.slice(0, 12)} as the trainer does not hold it right after it was materialised`,
          { version },
        );
      }
      return second;
    });
  }
}

function restarted(loss: Loss): Recovery {
  return { ...loss, action: "restart", version: null, batches_redone: 0 };
}
