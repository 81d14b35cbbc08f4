import { sha256Hex } from "../engine/mod.ts";
import { isFields } from "./short_forms.ts";

/**
 * Adds what an algorithm's file says of itself: the hash of its text, so that a run notices a
 * change, whether it has a value model's loss, and whether it may read each reward by itself. A
 * file that cannot be read adds nothing: that is reported elsewhere.
 */
export async function withFileFacts(value: unknown): Promise<unknown> {
  if (
    !isFields(value) || !isFields(value.algorithm) || typeof value.algorithm.source !== "string"
  ) return value;
  const bytes = await Deno.readFile(value.algorithm.source).catch(() => null);
  if (bytes === null) return value;
  const text = new TextDecoder().decode(bytes);
  const facts = {
    value_model: /^def value_loss\b/m.test(text),
    ...(/\.parts\b|(["'])parts\1/.test(text) && { parts: true }),
  };
  return { ...value, algorithm: { ...facts, ...value.algorithm, sha256: sha256Hex(bytes) } };
}

/** The path of a recorded configuration's algorithm, if its file has changed since; else null. */
export async function changedAlgorithm(config: unknown): Promise<string | null> {
  const recorded = isFields(config) && isFields(config.algorithm) ? config.algorithm : {};
  if (typeof recorded.sha256 !== "string") return null;
  const { algorithm } = await withFileFacts({ algorithm: recorded }) as {
    algorithm: Record<string, unknown>;
  };
  return algorithm.sha256 === recorded.sha256 ? null : String(recorded.source);
}
