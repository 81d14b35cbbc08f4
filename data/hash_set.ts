import { createHash } from "node:crypto";

/** Bytes of a hash: two values of 128 bits are never equal by chance. */
export const HASH_BYTES = 16;
const SLOTS_FIRST = 1 << 10;
const FULL = 0.6;

/** The hash of a text, as sets of hashes hold it. */
export function hashOf(text: string): Uint8Array {
  return createHash("sha256").update(text).digest().subarray(0, HASH_BYTES);
}

/** A set of hashes: 27 to 54 bytes for each, whatever was hashed. */
export class HashSet {
  /** Two numbers for each slot; both 0: it is empty. */
  #slots = new BigUint64Array(2 * SLOTS_FIRST);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds a hash. False: it was there. */
  add(hash: Uint8Array): boolean {
    const view = new DataView(hash.buffer, hash.byteOffset, HASH_BYTES);
    // The first half is never 0, so that no hash looks like an empty slot.
    const added = this.#put(view.getBigUint64(0, true) | 1n, view.getBigUint64(8, true));
    if (!added || ++this.#size <= FULL * this.#slots.length / 2) return added;
    const old = this.#slots;
    this.#slots = new BigUint64Array(2 * old.length);
    for (let at = 0; at < old.length; at += 2) {
      if (old[at] !== 0n) this.#put(old[at]!, old[at + 1]!);
    }
    return true;
  }

  #put(first: bigint, second: bigint): boolean {
    const mask = this.#slots.length / 2 - 1;
    let slot = Number(second & BigInt(mask));
    while (this.#slots[2 * slot] !== 0n) {
      if (this.#slots[2 * slot] === first && this.#slots[2 * slot + 1] === second) return false;
      slot = (slot + 1) & mask;
    }
    this.#slots[2 * slot] = first;
    this.#slots[2 * slot + 1] = second;
    return true;
  }
}
