import { type ArtifactRef, decodeSlab, type GeneratedSlab } from "../../data/mod.ts";
import { type ArtifactStore, sha256Hex } from "../../engine/mod.ts";

/**
 * All groups of a slab are scored at about the same time, so each slab is decoded once and the
 * newest ones are kept.
 */
const DECODED_MAX = 4;
const decoded = new Map<string, Promise<GeneratedSlab>>();

/** The slab behind an artifact. */
export async function decodedSlab(
  ref: ArtifactRef,
  artifacts: ArtifactStore,
): Promise<GeneratedSlab> {
  return await (decoded.get(ref.sha256) ?? keep(ref.sha256, artifacts.get(ref).then(decodeSlab)));
}

/**
 * Decodes bytes that are about to become an artifact. Errors are reported when the slab is
 * requested.
 */
export function decodeAhead(bytes: Uint8Array): void {
  const name = sha256Hex(bytes);
  if (!decoded.has(name)) keep(name, new Promise((resolve) => resolve(decodeSlab(bytes))));
}

function keep(name: string, decoding: Promise<GeneratedSlab>): Promise<GeneratedSlab> {
  for (const oldest of decoded.keys()) if (decoded.size >= DECODED_MAX) decoded.delete(oldest);
  decoded.set(name, decoding);
  // A failed read must not be cached: the next attempt reads again.
  decoding.catch(() => decoded.delete(name));
  return decoding;
}
