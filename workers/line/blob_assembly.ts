import { createHash } from "node:crypto";
import { z } from "zod";
import { InfrastructureError } from "../../engine/mod.ts";
import { LIMITS } from "./limits.ts";
import type { BlobFrame } from "./protocol.ts";

const BlobFrameSchema = z.strictObject({
  task: z.string(),
  blob: z.int().nonnegative().lt(LIMITS.blobs_max),
  offset: z.int().nonnegative(),
  total: z.int().nonnegative().max(LIMITS.answer_bytes_max),
  data: z.instanceof(Uint8Array).refine(
    (data) => data.length <= LIMITS.frame_bytes_max,
    "it is too long",
  ),
});

type Piece = { bytes: Uint8Array; filled: number };

/**
 * Assembles the blobs of running tasks from their frames and checks them against the result that
 * names them.
 */
export class BlobAssembly {
  #tasks = new Map<string, Map<number, Piece>>();

  /** Frames of other tasks are dropped, so only requested work uses memory. */
  expect(task: string): void {
    this.#tasks.set(task, new Map());
  }

  forget(task: string): void {
    this.#tasks.delete(task);
  }

  /**
   * Adds one frame. Frames of a blob arrive in order. Offset 0 restarts the blob, as after a
   * reconnect.
   * @throws {z.ZodError | RangeError} If the frame breaks the protocol.
   */
  add(value: unknown): void {
    const frame: BlobFrame = BlobFrameSchema.parse(value);
    const blobs = this.#tasks.get(frame.task);
    if (!blobs) return;
    if (frame.offset === 0) blobs.set(frame.blob, this.#open(blobs, frame));
    const piece = blobs.get(frame.blob);
    const expected = piece?.filled ?? 0;
    if (!piece || frame.offset !== expected || expected + frame.data.length > piece.bytes.length) {
      throw new RangeError(
        `Cannot place a blob frame at offset ${frame.offset}: next is ${expected} of ${
          piece?.bytes.length ?? 0
        }`,
      );
    }
    piece.bytes.set(frame.data, frame.offset);
    piece.filled += frame.data.length;
  }

  /**
   * Returns the blobs of a task and forgets them.
   * @throws {InfrastructureError} If one is missing, short or damaged.
   */
  take(task: string, declared: { sha256: string; bytes: number }[]): Uint8Array[] {
    const blobs = this.#tasks.get(task) ?? new Map<number, Piece>();
    this.#tasks.delete(task);
    return declared.map(({ sha256, bytes }, index) => {
      const piece = blobs.get(index);
      const got = piece?.filled ?? 0;
      if (got !== bytes) {
        throw new InfrastructureError(
          `Cannot use the result of task '${task}' because blob ${index} is incomplete: ` +
            `${got} of ${bytes} bytes arrived`,
          { task, blob: index, bytes, got },
        );
      }
      const found = createHash("sha256").update(piece?.bytes ?? new Uint8Array()).digest("hex");
      if (found !== sha256) {
        throw new InfrastructureError(
          `Cannot use the result of task '${task}' because blob ${index} is damaged: sha256 ` +
            `is ${found}, announced ${sha256}`,
          { task, blob: index, sha256, found },
        );
      }
      return piece?.bytes ?? new Uint8Array();
    });
  }

  #open(blobs: Map<number, Piece>, frame: BlobFrame): Piece {
    let held = frame.total;
    for (const [number, piece] of blobs) if (number !== frame.blob) held += piece.bytes.length;
    if (held > LIMITS.answer_bytes_max) {
      throw new RangeError(
        `Cannot hold ${held} bytes of blobs: the limit is ${LIMITS.answer_bytes_max}`,
      );
    }
    return { bytes: new Uint8Array(frame.total), filled: 0 };
  }
}
