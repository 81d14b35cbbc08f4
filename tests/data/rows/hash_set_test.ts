import { deepStrictEqual, ok, strictEqual, throws } from "node:assert/strict";
import { HASH_BYTES, hashOf, HashSet } from "../../../data/rows/hash_set.ts";

Deno.test("HashSet adds each hash once, however many there are", () => {
  const set = new HashSet(15_000);
  const texts = Array.from({ length: 20_000 }, (_, i) => `row ${i % 15_000}`);
  const added = texts.filter((text) => set.add(hashOf(text)));
  deepStrictEqual(added, texts.slice(0, 15_000));
  strictEqual(set.size, 15_000);
});

Deno.test("HashSet keeps hashes apart that differ in one half, and takes one of zeros", () => {
  const set = new HashSet(3);
  const hash = (...bytes: number[]) =>
    Uint8Array.from({ length: HASH_BYTES }, (_, i) => bytes[i] ?? 0);
  strictEqual(set.add(hash()), true);
  strictEqual(set.add(hash()), false);
  strictEqual(set.add(hash(2)), true);
  strictEqual(set.add(hash(...Array(8).fill(0), 1)), true);
  strictEqual(set.size, 3);
  throws(() => set.add(hash(4)), /^RangeError: Cannot add a hash because the set is for 3$/);
  strictEqual(set.add(hash(2)), false);
});

Deno.test("HashSet finds hashes whose places are the same, also at its end", () => {
  const last = (i: number) =>
    Uint8Array.from({ length: HASH_BYTES }, (_, at) => at === 0 ? 2 * i : 255);
  const set = new HashSet(100);
  const all = Array.from({ length: 100 }, (_, i) => last(i));
  deepStrictEqual(all.map((hash) => set.add(hash)), all.map(() => true));
  deepStrictEqual(all.map((hash) => set.add(hash)), all.map(() => false));
  strictEqual(new HashSet(0).size, 0);
});

Deno.test("HashSet has at most 20 bytes for each hash", () => {
  const before = Deno.memoryUsage().external;
  const set = new HashSet(1_000_000);
  const bytes = Deno.memoryUsage().external - before; // Less if others' were freed meanwhile.
  ok(bytes < 21_000_000, `${bytes}`);
  strictEqual(set.size, 0);
});

Deno.test("hashOf() has 16 bytes of the sha256", () => {
  strictEqual(hashOf("abc").toHex(), "ba7816bf8f01cfea414140de5dae2223");
});
