import { createHash } from "node:crypto";
import { type BlobFrame, LIMITS } from "../workers/mod.ts";

/** A task's binary results, cut as the real agent cuts them. */
export function* framesOf(task: string, blobs: Uint8Array[]): Generator<BlobFrame> {
  const chunk = LIMITS.frame_bytes_max / 2;
  for (const [blob, bytes] of blobs.entries()) {
    for (let offset = 0; offset === 0 || offset < bytes.length; offset += chunk) {
      yield { task, blob, offset, total: bytes.length, data: bytes.slice(offset, offset + chunk) };
    }
  }
}

export function declare(data: Uint8Array): { sha256: string; bytes: number } {
  return { sha256: createHash("sha256").update(data).digest("hex"), bytes: data.length };
}
