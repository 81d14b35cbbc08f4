import { createHash } from "node:crypto";

/** Bytes of a hash: two values of 128 bits are never equal by chance. */
export const HASH_BYTES = 16;
/** The part of the slots that is used when all hashes are there. */
const FULL = 0.8;
const NUMBERS = 4;

/** The hash of a text, as sets of hashes hold it. */
export function hashOf(text: string): Uint8Array {
  return createHash("sha256").update(text).digest().subarray(0, HASH_BYTES);
}

/**
 * A set of at most so many hashes: 20 bytes for each, whatever was hashed. It never grows, because
 * the old slots would need room beside the new ones.
 */
export class HashSet {
  /** Four numbers for each slot; the first is 0: it is empty. */
  readonly #slots: Uint32Array;
  readonly #size_max: number;
  #size = 0;

  constructor(size_max: number) {
    this.#size_max = size_max;
    this.#slots = new Uint32Array(NUMBERS * (Math.ceil(size_max / FULL) + 1));
  }

  get size(): number {
    return this.#size;
  }

  /** Adds a hash. False: it was there. */
  add(hash: Uint8Array): boolean {
    const view = new DataView(hash.buffer, hash.byteOffset, HASH_BYTES);
    // Never 0, so that no hash looks like an empty slot.
    const a = (view.getUint32(0, true) | 1) >>> 0;
    const [b, c, d] = [view.getUint32(4, true), view.getUint32(8, true), view.getUint32(12, true)];
    const slots = this.#slots;
    let at = NUMBERS * Math.floor(d / 2 ** 32 * (slots.length / NUMBERS));
    while (slots[at] !== 0) {
      if (slots[at] === a && slots[at + 1] === b && slots[at + 2] === c && slots[at + 3] === d) {
        return false;
      }
      at = (at + NUMBERS) % slots.length;
    }
    if (this.#size === this.#size_max) {
      throw new RangeError(`Cannot add a hash because the set is for ${this.#size_max}`);
    }
    slots.set([a, b, c, d], at);
    this.#size++;
    return true;
  }
}
