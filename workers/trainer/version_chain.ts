import { z } from "zod";
import { ArtifactRef, Optimizer, VersionRecord } from "../../data/mod.ts";
import {
  type ArtifactStore,
  BadDataError,
  checkReferred,
  LostRecordError,
  recordedValue,
  type RowKind,
} from "../../engine/mod.ts";
import type { SetAside } from "./checkpoint_files.ts";
import { Checkpoint } from "./model_files.ts";
import { StepRecord } from "../roles/trainer.ts";
import { Replan } from "./replan.ts";

/** The chain of a row. Absent: the policy's, trained by the group `trainer`. */
const OfGroup = z.string().optional();

const /** @internal */ checkpointNoteSchema = Checkpoint.extend({
  group: OfGroup,
  number: z.int().nonnegative().describe("Trained batches since the base."),
  round: z.int().nullable().describe(
    "null: saved between two rounds, for a preemption or a replan.",
  ),
  metric: z.number().nullable().describe(
    "The value of checkpoints.keep_best's metric; null: none configured, or none reported.",
  ),
  metric_name: z.string().optional().describe(
    "Which metric it is. Absent: there is no value.",
  ),
});
/** A `note/checkpoint` row, and the facts that decide how long it is kept. */
export type CheckpointNote = z.infer<typeof checkpointNoteSchema>;
/** Schema of {@linkcode CheckpointNote}. */
export const CheckpointNote: typeof checkpointNoteSchema = checkpointNoteSchema;

const /** @internal */ versionNoteSchema = z.strictObject({
  group: OfGroup,
  record: ArtifactRef,
  model_path: z.string(),
  number: z.int(),
  steps: z.array(StepRecord),
  start: z.strictObject({
    checkpoint: CheckpointNote,
    optimizer: Optimizer,
    model_digest: z.string().optional().describe(
      "Digest of the weights in model_path when the other run opened them; absent: not known.",
    ),
  }).optional().describe(
    "Another run trained it, and this run starts from its checkpoint: a chain's first version, in " +
      "place of a model directory. Absent: it is of this run.",
  ),
});
/**
 * A version from which the chain can be rebuilt: its record and, if trained, the result of each
 * step.
 */
export type VersionNote = z.infer<typeof versionNoteSchema>;
/** Schema of {@linkcode VersionNote}. */
export const VersionNote: typeof versionNoteSchema = versionNoteSchema;

type TrainedRecord = Extract<VersionRecord, { kind: "trained" }>;
/** A recorded batch that is redone. */
export type RedoStep = { id: string; record: TrainedRecord; note: VersionNote };
/** How a version is restored: a checkpoint or the base (null), and the batches after it. */
export type Route = {
  start: {
    id: string;
    note: VersionNote;
    optimizer: Optimizer;
    checkpoint: CheckpointNote | null;
    /** Of a base, which its directory must have; null: of a checkpoint. */
    model_digest: string | null;
  };
  redo: RedoStep[];
};

/** Rows of the journal, as the trainer reads them. */
export type RecordedRow = { kind: string; key: string; value: unknown };

/**
 * Replaces a value that is damaged in the journal. Most versions and checkpoints are never needed
 * again.
 */
const LOST = Symbol("lost");

/** Rows with their values read. A damaged one is reported when it is needed, not before. */
export function recordedRows(
  rows: readonly { kind: RowKind; key: string; value: string }[],
): RecordedRow[] {
  return rows.map((row) => {
    try {
      return { kind: row.kind, key: row.key, value: recordedValue(row) };
    } catch (error) {
      if (error instanceof LostRecordError && FORGIVING.has(row.kind)) {
        return { ...row, value: LOST };
      }
      throw error;
    }
  });
}
/**
 * Rows whose loss is reported only when needed: a route over the version fails, a checkpoint is not
 * used.
 */
const FORGIVING: ReadonlySet<RowKind> = new Set([
  "note/version",
  "note/checkpoint",
  "note/checkpoint_dropped",
  "note/checkpoint_set_aside",
]);

/**
 * The rows of one group's chain. Rows about removed files name no group and concern every chain.
 */
export function ofGroup(rows: readonly RecordedRow[], group: string | undefined): RecordedRow[] {
  return rows.filter(({ kind, value }) =>
    !["note/version", "note/checkpoint"].includes(kind) || value === LOST ||
    (value as { group?: string }).group === group
  );
}

/**
 * What is recorded about versions, checkpoints and replans: everything from which a version can be
 * rebuilt.
 */
export class VersionChain {
  readonly replans: Replan[] = [];
  readonly #artifacts: ArtifactStore;
  readonly #versions = new Map<string, VersionNote>();
  readonly #checkpoints = new Map<string, CheckpointNote>();
  /** Versions whose rows are damaged. */
  readonly #lost = new Set<string>();

  constructor(artifacts: ArtifactStore, recorded: readonly RecordedRow[]) {
    this.#artifacts = artifacts;
    for (const row of recorded) this.#remember(row);
  }

  #remember({ kind, key, value }: RecordedRow): void {
    if (value === LOST) return this.#lose(kind, key);
    if (kind === "note/version") this.add(key, VersionNote.parse(value));
    if (kind === "note/checkpoint") this.addCheckpoint(CheckpointNote.parse(value));
    if (kind === "note/checkpoint_dropped") this.drop(key);
    if (kind === "note/checkpoint_set_aside") this.drop(key, (value as SetAside).dir);
    if (kind === "note/replan") this.replans.push(Replan.parse(value));
  }

  /** A checkpoint with a damaged row is not used. */
  #lose(kind: string, key: string): void {
    if (kind === "note/version") this.#lost.add(key);
    else this.drop(key);
  }

  add(version: string, note: VersionNote): void {
    this.#versions.set(version, note);
  }

  addCheckpoint(checkpoint: CheckpointNote): void {
    this.#checkpoints.set(checkpoint.version, checkpoint);
  }

  /** Forgets the checkpoint of a version; with `dir` only if it is that one. */
  drop(version: string, dir?: string): void {
    if (dir === undefined || this.#checkpoints.get(version)?.dir === dir) {
      this.#checkpoints.delete(version);
    }
  }

  /** Whether this run has named a version; a start's first ones are another run's. */
  hasNamedVersion(): boolean {
    return this.#lost.size > 0 || [...this.#versions.values()].some(({ start }) => !start);
  }

  /** Checkpoints of other runs' versions that this run started from: they are never dropped. */
  starts(): CheckpointNote[] {
    return [...this.#versions.values()].flatMap(({ start }) => start ? [start.checkpoint] : []);
  }

  /** In the order they were recorded. */
  checkpoints(): CheckpointNote[] {
    return [...this.#checkpoints.values()];
  }

  /** @throws {BadDataError} If this run has no such version. */
  note(version: string): VersionNote {
    const note = this.#versions.get(version);
    if (note) return note;
    if (this.#lost.has(version)) {
      throw new LostRecordError(
        `Cannot rebuild policy version ${
          version.slice(0, 12)
        } because its row in the journal is damaged. Fix: put the ` +
          "journal back from a copy",
        { kind: "note/version", key: version },
      );
    }
    throw new BadDataError(
      `Cannot rebuild policy version ${
        version.slice(0, 12)
      } because it is not recorded in this run`,
      {
        version,
      },
    );
  }

  /** The newest checkpoint at or before `version`, and the batches after it. */
  async routeTo(version: string): Promise<Route> {
    const redo: RedoStep[] = [];
    for (let id = version;;) {
      const note = this.note(id);
      const checkpoint = this.#checkpoints.get(id) ?? note.start?.checkpoint ?? null;
      if (note.start) { // Nothing reads its record, which may have the form of a different release.
        const { optimizer } = note.start;
        return { start: { id, note, optimizer, checkpoint, model_digest: null }, redo };
      }
      const record = await this.#record(note);
      if (record.kind === "base" || checkpoint) {
        const { optimizer } = record;
        const model_digest = record.kind === "base" ? record.model_digest : null;
        return { start: { id, note, optimizer, checkpoint, model_digest }, redo };
      }
      redo.unshift({ id, record, note });
      id = record.parent;
    }
  }

  /** The batches that lead from an older version to a newer one; null if they do not. */
  async stepsBetween(older: string, newer: string): Promise<RedoStep[] | null> {
    const steps: RedoStep[] = [];
    for (let id = newer; id !== older;) {
      const note = this.note(id);
      if (note.start) return null;
      const record = await this.#record(note);
      if (record.kind === "base") return null;
      steps.unshift({ id, record, note });
      id = record.parent;
    }
    return steps;
  }

  async #record(note: VersionNote): Promise<VersionRecord> {
    return VersionRecord.parse(await this.#artifacts.getJson(note.record));
  }

  /**
   * Checks the artifacts needed to redo a step, and those that they refer to.
   * @throws {LostRecordError} If one is missing or damaged, naming it.
   */
  async checkArtifacts({ record, note }: RedoStep): Promise<void> {
    for (const name of ["loss", "batch"] as const) {
      await checkReferred(this.#artifacts, record[name]).catch((error) => {
        if (!(error instanceof LostRecordError)) throw error;
        throw new LostRecordError(
          `Cannot redo batch ${note.number} of the chain because its ${name} is damaged: ` +
            `${error.message}`,
          { ...error.facts, number: note.number, artifact: name },
          { cause: error },
        );
      });
    }
  }
}
