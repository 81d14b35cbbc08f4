import { sha256Hex } from "../engine/mod.ts";
import type { PythonAlgorithm } from "../algs/mod.ts";
import { isFields, writeOut } from "./short_forms.ts";

/**
 * Adds what an algorithm's file says of itself: the hash of its text, so that a run notices a
 * change, and by its text what decides how a flow is built: whether it has a value model's loss,
 * reads each reward by itself, scores of a reward model, or labels. A trainer that opens it checks
 * this. A file that cannot be read adds nothing: that is reported elsewhere.
 */
export async function withFileFacts(value: unknown): Promise<unknown> {
  if (
    !isFields(value) || !isFields(value.algorithm) || typeof value.algorithm.source !== "string"
  ) return value;
  const bytes = await Deno.readFile(value.algorithm.source).catch(() => null);
  if (bytes === null) return value;
  const { algorithm: block } = value;
  const facts = factsOf(new TextDecoder().decode(bytes), value.flow);
  const { unpaired } = block;
  const whole = isFields(unpaired)
    ? { ...block, unpaired: { ...facts.unpaired, ...unpaired } }
    : block;
  return { ...value, algorithm: { ...facts, ...whole, sha256: sha256Hex(bytes) } };
}

/** The block of an algorithm as a configuration has it: written out, with what its file says. */
export async function algorithmBlock(algorithm: unknown): Promise<unknown> {
  const whole = await withFileFacts(writeOut({ algorithm }).value) as { algorithm: unknown };
  return whole.algorithm;
}

/** Of Python, what is no code: texts, in three quotes or one, and comments. */
const TEXTS = /"""[^]*?"""|'''[^]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#.*$/gm;

function factsOf(text: string, flow: unknown): Partial<PythonAlgorithm> {
  const code = text.replaceAll(TEXTS, (one) => /^(["'])parts\1$/.test(one) ? one : "");
  const reads = (name: string) => new RegExp(`\\.${name}\\b(?!\\s*\\()`).test(code);
  const facts = {
    value_model: /^def value_loss\b/m.test(code),
    ...(/\.parts\b|(["'])parts\1/.test(code) && { parts: true }),
  };
  if (flow !== "preference") return facts;
  const mismatched = /^MISMATCHED\b.*=\s*True\b/m.test(code);
  return {
    ...facts,
    ...(reads("score") && { head: "score" }),
    ...(reads("label") && { unpaired: { mismatched } }),
  };
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
