import { createHash } from "node:crypto";
import { sha256Hex } from "../engine/mod.ts";

/** The weights of the fake model: one number, kept as a file of a directory. */
const WEIGHTS = "weights.json";
/** A file system, for the one file that a fake worker reads and writes in each directory. */
export const read = async (dir: string): Promise<number> =>
  JSON.parse(await Deno.readTextFile(`${dir}/${WEIGHTS}`));

/** Writes a model directory that fake workers can read. */
export async function writeFakeModel(
  dir: string,
  weights: number,
): Promise<{ digest: string; file: { path: string; sha256: string; bytes: number } }> {
  const text = JSON.stringify(weights);
  await Deno.mkdir(dir, { recursive: true });
  // As a real trainer's: who has seen a whole file never reads half of one that an engine taken for
  // dead writes again.
  const partial = `${dir}/.${crypto.randomUUID()}.tmp`;
  await Deno.writeTextFile(partial, text);
  await Deno.rename(partial, `${dir}/${WEIGHTS}`);
  const sha256 = createHash("sha256").update(text).digest("hex");
  return { digest: digestOf(weights), file: { path: WEIGHTS, sha256, bytes: text.length } };
}

export function digestOf(weights: number): string {
  return sha256Hex(JSON.stringify(weights));
}

export function probe(weights: number): { logp: number[]; sha256: string } {
  return { logp: [-fraction(weights)], sha256: digestOf(weights) };
}

/** A number in [0, 1) that depends on every bit of its arguments. */
export function fraction(...parts: (string | number)[]): number {
  return parseInt(sha256Hex(JSON.stringify(parts)).slice(0, 12), 16) / 2 ** 48;
}
