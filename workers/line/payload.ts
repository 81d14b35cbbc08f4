import { ArtifactRef } from "../../data/mod.ts";
import { z } from "zod";
import { type ArtifactStore, BadDataError, InfrastructureError } from "../../engine/mod.ts";
import { LIMITS } from "./limits.ts";

const ArgumentsInline = z.strictObject({ json: z.string() });
const ArgumentsBeside = z.strictObject({
  artifact: ArtifactRef.describe("Of the same JSON, in the run's home."),
});
/**
 * An operation's arguments and outputs: text that nothing between engine and rank reads. Long text
 * travels separately, so that it never blocks the line: arguments as an artifact that the rank
 * reads, outputs as a blob.
 */
export const Arguments = z.union([ArgumentsInline, ArgumentsBeside]);
export type Arguments = z.infer<typeof Arguments>;

const OutputInline = z.strictObject({ json: z.string() });
const OutputBeside = z.strictObject({
  blob: z.int().nonnegative().describe("Its place among the result's blobs."),
});
export const Output = z.union([OutputInline, OutputBeside]);
export type Output = z.infer<typeof Output>;

/** @throws {EngineError} If the arguments are not JSON, or the artifact cannot be written. */
export async function argumentsOf(
  args: unknown,
  { op, group, artifacts }: { op: string; group: string; artifacts: Pick<ArtifactStore, "put"> },
): Promise<Arguments> {
  const json = jsonOf(args, { op, group });
  const bytes = new TextEncoder().encode(json);
  return bytes.length <= LIMITS.inline_bytes_max
    ? { json }
    : { artifact: await artifacts.put(bytes) };
}

function jsonOf(args: unknown, { op, group }: { op: string; group: string }): string {
  try {
    return JSON.stringify(args ?? null);
  } catch (cause) { // A string holds at most half a gigabyte.
    throw new BadDataError(
      `Cannot run '${op}' on ${group} because its arguments cannot be written as JSON: ${
        (cause as Error).message
      }. ` +
        "Fix: pass it less at once",
      { op, group },
      { cause },
    );
  }
}

/** An output as an agent sends it. Text that is too long for its message is added to the blobs. */
export function outputOf(json: string, blobs: Uint8Array[]): Output {
  const bytes = new TextEncoder().encode(json);
  return bytes.length <= LIMITS.inline_bytes_max ? { json } : { blob: blobs.push(bytes) - 1 };
}

/** The outputs of all ranks, and the operation's own blobs. */
export function outputsOf(
  outputs: Output[],
  { task, blobs }: { task: string; blobs: Uint8Array[] },
): { outputs: unknown[]; blobs: Uint8Array[] } {
  const beside = new Set(outputs.flatMap((output) => "blob" in output ? [output.blob] : []));
  const text = (output: Output) =>
    "json" in output ? output.json : new TextDecoder().decode(blobs[output.blob]);
  try {
    return {
      outputs: outputs.map((output) => JSON.parse(text(output))),
      blobs: blobs.filter((_, i) => !beside.has(i)),
    };
  } catch (cause) {
    throw new InfrastructureError(
      `Cannot use the result of task '${task}' because an output is not JSON: ${
        (cause as Error).message
      }`,
      { task },
      { cause },
    );
  }
}
