/** Random numbers derived from names, so that they need no record. */
import { sha256Hex } from "../canonical.ts";

/** A stream in [0, 1) that depends on its names only (xoshiro128**, seeded by sha256). */
export function randomStream(...names: (string | number)[]): () => number {
  const seed = sha256Hex(JSON.stringify(names));
  let [a, b, c, d] = [0, 8, 16, 24].map((at) => parseInt(seed.slice(at, at + 8), 16)) as [
    number,
    number,
    number,
    number,
  ];
  return () => {
    const product = Math.imul(b, 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = (d << 11) | (d >>> 21);
    return result / 2 ** 32;
  };
}
