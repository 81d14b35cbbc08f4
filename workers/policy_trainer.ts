import { z } from "zod";
import { ArtifactRef, type Numerics, type Optimizer, type Policy, VersionRecord } from "../data/mod.ts";
import {
  type ArtifactStore,
  BadDataError,
  canonicalJson,
  type Clock,
  InfrastructureError,
  RedoDriftError,
  sha256Hex,
} from "../engine/mod.ts";
import type { CallOptions, CallResult } from "./group.ts";
import type { Loss, Recovery, RestartCause } from "./recovery.ts";
import { Checkpoint, NotResident, OPERATIONS, Publication, StepRecord } from "./operations.ts";

/** A worker group as policy code sees it: named operations, one at a time, answered by every rank. */
export interface Operator {
  call(op: string, args: unknown, options: CallOptions): Promise<CallResult>;
  /** The oldest loss since the last time it was asked; null if there was none. */
  takeLoss?(): Loss | null;
}
/** Who calls: the stage's identity, and where a recovery is recorded. A stage context fits. */
export type Caller = CallOptions & { record(kind: "recovery", key: string, value: Recovery): Promise<void> };

/** A version the chain can be rebuilt from: its record, and for a trained one what each step gave. */
export const VersionNote = z.strictObject({
  record: ArtifactRef,
  model_path: z.string(),
  number: z.int(),
  steps: z.array(StepRecord),
});
export type VersionNote = z.infer<typeof VersionNote>;

type Records = { versions: Map<string, VersionNote>; checkpoints: Map<string, Checkpoint> };

/**
 * The trainer as stages see it: every operation names the version it needs, and a group that does not hold it is brought
 * there first (newest whole checkpoint at or before it, then the recorded batches, each checked bit for bit).
 */
export class PolicyTrainer {
  readonly #operator: Operator;
  readonly #artifacts: ArtifactStore;
  readonly #clock: Clock;
  readonly #numerics: (microBatchTokensMax: number) => Promise<Numerics>;
  readonly #records: Records = { versions: new Map(), checkpoints: new Map() };
  #tail: Promise<unknown> = Promise.resolve();
  readonly #restart: RestartCause;
  /** An earlier engine had loaded something, or this one. */
  #loadedBefore = false;
  #loadedHere = false;

  constructor(
    options: {
      operator: Operator;
      artifacts: ArtifactStore;
      clock: Clock;
      /** What the ready group says of its numerics. */
      numerics: (microBatchTokensMax: number) => Promise<Numerics>;
      /** What earlier engines recorded: `note/version` and `note/checkpoint` rows, in order. */
      recorded: { kind: string; key: string; value: unknown }[];
      /** How the engine before this one ended, if there was one. */
      restart?: RestartCause;
    },
  ) {
    this.#restart = options.restart ?? "engine_lost";
    this.#operator = options.operator;
    this.#artifacts = options.artifacts;
    this.#clock = options.clock;
    this.#numerics = options.numerics;
    for (const row of options.recorded) this.#remember(row);
    this.#loadedBefore = options.recorded.some((row) => row.kind === "note/version");
  }

  #remember({ kind, key, value }: { kind: string; key: string; value: unknown }): void {
    if (kind === "note/version") this.#records.versions.set(key, VersionNote.parse(value));
    if (kind === "note/checkpoint") this.#records.checkpoints.set(key, Checkpoint.parse(value));
    if (kind === "note/checkpoint_dropped") this.#records.checkpoints.delete(key);
  }

  /** The first version of a chain: a model directory with a fresh optimizer. Changes nothing in the trainer. */
  async base(modelPath: string, optimizer: Optimizer, caller: Caller): Promise<{ policy: Policy; note: VersionNote }> {
    const output = OPERATIONS.trainer.inspect_model.output.parse(
      await this.#exclusive(caller, () => this.#call("inspect_model", { dir: modelPath }, caller)),
    );
    const record = await this.#artifacts.putJson(
      VersionRecord.parse({ kind: "base", model_digest: output.digest, optimizer }),
    );
    const note = { record, model_path: modelPath, number: 0, steps: [] };
    this.#records.versions.set(record.sha256, note);
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
    },
    caller: Caller,
  ): Promise<{ policy: Policy; note: VersionNote }> {
    const { policy, batch, loss, optimizer, micro_batch_tokens_max } = input;
    const numerics = await this.#numerics(micro_batch_tokens_max);
    const identity = VersionRecord.parse({ kind: "trained", parent: policy.version, batch, loss, optimizer, numerics });
    const bytes = new TextEncoder().encode(canonicalJson(identity));
    const record = { sha256: sha256Hex(bytes), bytes: bytes.byteLength };
    const kept = this.#artifacts.put(bytes); // Nobody reads it before the result is recorded: written while the step runs.
    kept.catch(() => undefined); // Told below.
    const args = { from: policy.version, to: record.sha256, batch, loss, micro_batch_tokens_max };
    const output = await this.#resident(policy.version, caller, () => this.#call("train", args, caller));
    const { steps } = OPERATIONS.trainer.train.output.options[1].parse(output);
    await kept;
    const note = { record, model_path: policy.model_path, number: policy.number + 1, steps };
    this.#records.versions.set(record.sha256, note);
    return { policy: { ...policy, version: record.sha256, record, number: note.number }, note };
  }

  /** Per-token columns of a batch under `policy` (`old_logp`) or the reference model (`ref_logp`). */
  async score(
    input: {
      policy: Policy;
      batch: ArtifactRef;
      columns: string[];
      reference_path: string | null;
      micro_batch_tokens_max: number;
    },
    caller: Caller,
  ): Promise<Record<string, ArtifactRef>> {
    const { policy, ...rest } = input;
    const args = { version: policy.version, ...rest };
    let blobs: Uint8Array[] = [];
    const output = await this.#resident(policy.version, caller, async () => {
      const answer = await this.#operator.call("score", args, caller);
      blobs = answer.blobs;
      return answer.outputs[0];
    });
    const { columns } = OPERATIONS.trainer.score.output.options[1].parse(output);
    const refs = await Promise.all(blobs.map((blob) => this.#artifacts.put(blob)));
    return Object.fromEntries(columns.map((column, i) => [column, refs[i]!]));
  }

  /** Writes the weights of `policy` as a plain Hugging Face directory with a manifest. */
  async publish(policy: Policy, dir: string, caller: Caller): Promise<Publication> {
    const args = { version: policy.version, dir };
    return Publication.parse(await this.#resident(policy.version, caller, () => this.#call("publish", args, caller)));
  }

  /** Writes a checkpoint. It counts once its note is recorded with the stage's result. */
  async save(policy: Policy, dir: string, caller: Caller): Promise<Checkpoint> {
    const args = { version: policy.version, dir };
    const outputs: unknown[] = [];
    await this.#resident(policy.version, caller, async () => {
      const answer = await this.#operator.call("save", args, caller);
      outputs.splice(0, outputs.length, ...answer.outputs);
      return answer.outputs[0];
    });
    const shards = outputs.map((output) => Checkpoint.parse(output));
    const checkpoint = { ...shards[0]!, files: shards.flatMap((shard) => shard.files) };
    this.#records.checkpoints.set(policy.version, checkpoint);
    return checkpoint;
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

  /** Checkpoints this chain can start from, in the order they were recorded. */
  checkpoints(): Checkpoint[] {
    return [...this.#records.checkpoints.values()];
  }

  /** Forgets a checkpoint whose deletion was recorded. */
  dropped(version: string): void {
    this.#records.checkpoints.delete(version);
  }

  async #call(op: keyof typeof OPERATIONS.trainer, args: unknown, caller: Caller): Promise<unknown> {
    return (await this.#operator.call(op, args, caller)).outputs[0];
  }

  /** Materialise and operate must not be cut in two by another operation: one at a time. */
  #exclusive<T>(caller: Caller, work: () => Promise<T>): Promise<T> {
    const whole = async () => {
      const done = await work();
      const loss = this.#operator.takeLoss?.() ?? null; // One that cost no version.
      if (loss) await caller.record("recovery", caller.key, { ...loss, action: "restart", ...NOTHING_REDONE });
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
      await this.#materialise(version, refused.data.not_resident, caller);
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

  /** Loads the newest checkpoint at or before `version` and redoes the recorded batches after it. */
  async #materialise(version: string, held: string | null, caller: Caller): Promise<void> {
    const started = this.#clock.monotonic();
    const redo: { id: string; record: Extract<VersionRecord, { kind: "trained" }>; note: VersionNote }[] = [];
    let id = version;
    let note = this.#note(id);
    let record = await this.#record(note);
    while (record.kind === "trained" && !this.#records.checkpoints.has(id)) {
      redo.unshift({ id, record, note });
      id = record.parent;
      note = this.#note(id);
      record = await this.#record(note);
    }
    const checkpoint = this.#records.checkpoints.get(id) ?? null;
    const args = { version: id, model_path: note.model_path, optimizer: record.optimizer, checkpoint };
    await this.#call("load", args, caller);
    for (const step of redo) await this.#redo(step, caller);
    const loss = this.#operator.takeLoss?.() ?? null;
    const fresh = redo.length === 0 && checkpoint === null && (held !== null || !this.#loadedBefore);
    const cause = loss?.cause ?? this.#causeWithoutLoss(held);
    this.#loadedBefore = true;
    this.#loadedHere = true;
    if (fresh && !loss) return;
    await caller.record("recovery", caller.key, {
      cause,
      action: checkpoint === null ? "load_base" : "load_checkpoint",
      version,
      batches_redone: redo.length,
      seconds: loss?.seconds ?? (this.#clock.monotonic() - started) / 1000,
    });
  }

  #causeWithoutLoss(held: string | null): string {
    if (held !== null) return "other_version";
    return this.#loadedHere ? "worker_lost" : this.#restart;
  }

  async #redo(
    { id, record, note }: { id: string; record: Extract<VersionRecord, { kind: "trained" }>; note: VersionNote },
    caller: Caller,
  ): Promise<void> {
    const { parent, batch, loss, numerics } = record;
    const args = { from: parent, to: id, batch, loss, micro_batch_tokens_max: numerics.micro_batch_tokens_max };
    const output = OPERATIONS.trainer.train.output.options[1].parse(await this.#call("train", args, caller));
    const same = output.steps.length === note.steps.length &&
      output.steps.every((step, i) => sameStep(step, note.steps[i]!));
    if (!same) throw redoDrift(id, note.steps, output.steps);
  }

  #note(version: string): VersionNote {
    const note = this.#records.versions.get(version);
    if (note) return note;
    throw new BadDataError(`Cannot rebuild policy version ${version.slice(0, 12)} as it is not recorded in this run`, {
      version,
    });
  }

  async #record(note: VersionNote): Promise<VersionRecord> {
    return VersionRecord.parse(await this.#artifacts.getJson(note.record));
  }
}

const NOTHING_REDONE = { version: null, batches_redone: 0 };

function sameStep(a: StepRecord, b: StepRecord): boolean {
  return Object.is(a.loss, b.loss) && Object.is(a.grad_norm, b.grad_norm);
}

/** The redone step gave other bits than the recorded one: the weights would differ from those that were rolled out. */
function redoDrift(version: string, recorded: StepRecord[], redone: StepRecord[]): RedoDriftError {
  const show = (steps: StepRecord[]) =>
    steps.map(({ loss, grad_norm }) => `loss ${loss}, grad_norm ${grad_norm}`).join("; ");
  return new RedoDriftError(
    `Cannot redo version ${version.slice(0, 12)} as the redone step differs from the recorded one: recorded ${
      show(recorded)
    }; ` +
      `redone ${show(redone)}. Redo on the same hardware, thread count and package versions`,
    { version, recorded, redone },
  );
}
