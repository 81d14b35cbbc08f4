import { seedOfSource } from "./mixture.ts";
import type { Draw } from "../prompt.ts";
import { type RowTable, sourceSizes } from "../rows/row_table.ts";

type Order = { seed: number; rows: number };

const FEISTEL_ROUNDS = 8;
// A small domain makes a poor Feistel network, so even three rows are permuted as the first three
// of 2^12 places.
const HALF_BITS_MIN = 6;

/**
 * Which row draw number `draw` reads: every epoch is a different permutation of the rows. A pure
 * function of (seed, draw, rows): nothing is stored, so a resume, fork or redo computes it again.
 */
export function placeOfDraw(draw: number, { seed, rows }: Order): { place: number; epoch: number } {
  if (!Number.isSafeInteger(draw) || draw < 0) {
    throw new RangeError(`Cannot draw because ${draw} is not a draw number`);
  }
  if (!Number.isSafeInteger(rows) || rows < 1) {
    throw new RangeError(`Cannot draw from ${rows} rows: at least one is needed`);
  }
  const epoch = Math.floor(draw / rows);
  return { place: permute(draw % rows, { rows, keys: roundKeys(seed, epoch) }), epoch };
}

/** The draws [from, from + count) of a table. */
export async function drawRows(
  table: RowTable,
  { seed, from, count }: { seed: number; from: number; count: number },
): Promise<Draw[]> {
  const places = Array.from(
    { length: count },
    (_, i) => placeOfDraw(from + i, { seed, rows: table.size }).place,
  );
  const rows = await table.rows(places);
  return rows.map((row, i) => ({ draw: from + i, row }));
}

/**
 * Which source each of some draws reads. `drawn`: how many draws of each source came before them.
 */
export type Picks = { sources: number[]; drawn: number[] };

/** The draws from `from` on of a mixture: every source has its own order, epoch by epoch. */
export async function drawMixed(
  table: RowTable,
  { sources, drawn }: Picks,
  { seed, from }: { seed: number; from: number },
): Promise<Draw[]> {
  const sizes = sourceSizes(table);
  const begins = sizes.map((_, i) => sizes.slice(0, i).reduce((sum, size) => sum + size, 0));
  const next = [...drawn];
  const places = sources.map((source) => {
    const order = { seed: seedOfSource(seed, source), rows: sizes[source]! };
    return begins[source]! + placeOfDraw(next[source]!++, order).place;
  });
  const rows = await table.rows(places);
  return rows.map((row, i) => ({ draw: from + i, row }));
}

/**
 * A keyed permutation of [0, rows): a balanced Feistel network on the next even power of two,
 * walked until it lands inside (Black and Rogaway 2002, "cycle walking"). The expected walk is at
 * most 4 steps once rows >= 2^10.
 */
export function permute(
  place: number,
  { rows, keys }: { rows: number; keys: readonly number[] },
): number {
  const half = Math.max(HALF_BITS_MIN, Math.ceil(Math.log2(rows) / 2));
  const size = 2 ** half;
  let at = place;
  do {
    let left = Math.floor(at / size);
    let right = at % size;
    for (const key of keys) [left, right] = [right, (left ^ mix(right ^ key)) & (size - 1)];
    at = left * size + right;
  } while (at >= rows);
  return at;
}

/** Keys of the Feistel rounds, from all 53 bits of the seed and the epoch. */
export function roundKeys(seed: number, epoch: number): number[] {
  const parts = [
    seed >>> 0,
    Math.floor(seed / 2 ** 32) >>> 0,
    epoch >>> 0,
    Math.floor(epoch / 2 ** 32) >>> 0,
  ];
  const key = parts.reduce(
    (state, part) => mix(Math.imul(state, 0x9e3779b1) ^ mix(part + 0x85ebca6b)),
    0x51ed270b,
  );
  return Array.from({ length: FEISTEL_ROUNDS }, (_, i) => mix(key + Math.imul(i + 1, 0x9e3779b9)));
}

/**
 * 32-bit finaliser "lowbias32" (Wellons, https://nullprogram.com/blog/2018/07/31/): every input bit
 * flips half the output's.
 */
function mix(value: number): number {
  let x = value | 0;
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return (x ^ (x >>> 16)) >>> 0;
}
