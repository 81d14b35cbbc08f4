/** Results of rewards that are kept, so that nothing is scored twice. */
import { createHash } from "node:crypto";

/** What a reward gave a sample; a null score: it does not apply. */
export type KeptScore = {
  score: number | null;
  metrics: Record<string, number>;
  /** What each token earns, if the function says it. */
  token_scores?: number[];
};

/**
 * A place for results by key. All of it may be gone at any time, and nothing may depend on it:
 * neither method throws.
 */
export interface KeptScores {
  /** The result of each key; null: there is none. */
  find(keys: readonly string[]): (KeptScore | null)[];
  /** Keeps results; those of keys that are there stay as they are. */
  keep(results: readonly (readonly [key: string, result: KeptScore])[]): void;
}

/** What the results of a function depend on besides the sample, and what one call scores. */
export type Identity = { code: string; unit: "sample" | "group" };

/**
 * The key of each sample's result: the hash of the function's code, of the row and of the
 * completion. Of a function that scores whole groups, of all completions of the group.
 */
export function scoreKeys(
  { code, unit }: Identity,
  { row, samples }: { row: unknown; samples: readonly unknown[] },
): string[] {
  const shared = hashOf([code, unit, row]);
  const all = unit === "group" ? hashOf([shared, samples]) : shared;
  return samples.map((sample, i) => hashOf(unit === "group" ? [all, i] : [all, sample]));
}

function hashOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex");
}
