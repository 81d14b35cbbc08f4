import { VersionRecord } from "../data/mod.ts";
import { type ArtifactStore, EngineError } from "../engine/mod.ts";
import { type RecordedRow, VersionNote } from "./version_chain.ts";

/**
 * What a run has recorded of the model directories that its chains, and its references, start from.
 */
export class ModelDigests {
  readonly #artifacts: ArtifactStore;
  /** The record of each directory's base version. */
  readonly #records = new Map<string, VersionNote["record"]>();

  constructor(artifacts: ArtifactStore, recorded: readonly RecordedRow[]) {
    this.#artifacts = artifacts;
    for (const { kind, value } of recorded) {
      const note = kind === "note/version" ? VersionNote.safeParse(value).data : undefined; // Its row may be damaged.
      if (note) this.add(note);
    }
  }

  add({ number, model_path, record }: VersionNote): void {
    if (number === 0) this.#records.set(model_path, record);
  }

  /**
   * Digest of the weights in a directory, as they were when the run first named it; null where that
   * is not known.
   */
  async digestOf(dir: string | null): Promise<string | null> {
    const ref = dir === null ? undefined : this.#records.get(dir);
    if (ref === undefined) return null;
    try {
      const record = VersionRecord.parse(await this.#artifacts.getJson(ref));
      return record.kind === "base" ? record.model_digest : null;
    } catch (error) {
      if (error instanceof EngineError) return null; // Nothing else needs it: a lost record stops no run.
      throw error;
    }
  }
}
