import { createHash, type Hash } from "node:crypto";

const HEX_DIGITS = 64;

/**
 * A hash of content that is named by it in the home's cache alone. BLAKE2b, since a processor without
 * instructions for sha256 takes three times as long for that.
 */
export function contentHash(): Hash {
  return createHash("blake2b512");
}

/** The first 256 bits of a content's hash. */
export function contentName(hash: Hash): string {
  return hash.digest("hex").slice(0, HEX_DIGITS);
}
