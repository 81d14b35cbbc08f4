import { VersionRecord } from "../../data/mod.ts";
import { type ArtifactStore, EngineError } from "../../engine/mod.ts";
import { type RecordedRow, VersionNote } from "./version_chain.ts";

/**
 * What a run has recorded about the model directories from which its chains and references start.
 */
export class ModelDigests {
  readonly #artifacts: ArtifactStore;
  /** The record of each directory's base version. */
  readonly #records = new Map<string, VersionNote["record"]>();
  /** Of each directory that the run from which this one started has opened: its digest. */
  readonly #before = new Map<string, string>();

  constructor(artifacts: ArtifactStore, recorded: readonly RecordedRow[]) {
    this.#artifacts = artifacts;
    for (const { kind, value } of recorded) {
      // Its row may be damaged.
      const note = kind === "note/version" ? VersionNote.safeParse(value).data : undefined;
      if (note) this.add(note);
    }
  }

  add({ number, model_path, record, start }: VersionNote): void {
    if (start?.model_digest !== undefined) this.#before.set(model_path, start.model_digest);
    else if (number === 0) this.#records.set(model_path, record);
  }

  /**
   * Digest of the weights in a directory when the run, or the one that it started from, first named
   * it; null if unknown.
   */
  async digestOf(dir: string | null): Promise<string | null> {
    const before = dir === null ? undefined : this.#before.get(dir);
    if (before !== undefined) return before;
    const ref = dir === null ? undefined : this.#records.get(dir);
    if (ref === undefined) return null;
    try {
      const record = VersionRecord.parse(await this.#artifacts.getJson(ref));
      return record.kind === "base" ? record.model_digest : null;
    } catch (error) {
      // Nothing else needs it, so a lost record does not stop the run.
      if (error instanceof EngineError) return null;
      throw error;
    }
  }
}
