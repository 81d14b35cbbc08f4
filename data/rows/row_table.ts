import type { DataPlace } from "../errors.ts";
import type { Row } from "../prompt.ts";

/**
 * Rows that are read by place, and a digest of their content. Files and generated tasks look the
 * same. Rows of files are never all in memory.
 */
export type RowTable = {
  /** How many rows it has. */
  readonly size: number;
  /** The rows at these places, in this order. @throws {RangeError} If there is no such place. */
  rows(places: readonly number[]): Promise<Row[]>;
  /** Where in its file a row is; absent: rows come from no file. */
  placeOf?(place: number): Promise<DataPlace>;
  /** A hash in hexadecimal digits: changes if a file, or how it is read, changes. */
  readonly digest: string;
  /** How many rows each source has, in the table's order; absent: the table has one source. */
  readonly sources?: readonly number[];
};

/** How many rows each source of a table has. */
export function sourceSizes({ sources, size }: RowTable): readonly number[] {
  return sources ?? [size];
}

/** Rows that are in memory at once while a table is read from one end to the other. */
const CHUNK_ROWS = 1024;

/** All rows of a table in order, in chunks, of which one is in memory. `from`: its first place. */
export async function* rowChunks(
  table: RowTable,
  { rows: most = CHUNK_ROWS, to = table.size }: { rows?: number; to?: number } = {},
): AsyncGenerator<{ from: number; rows: Row[] }> {
  for (let from = 0; from < to; from += most) {
    const count = Math.min(most, to - from);
    yield { from, rows: await table.rows(Array.from({ length: count }, (_, i) => from + i)) };
  }
}

/** The first `count` rows of a table, or all if it has fewer. */
export async function firstRows(table: RowTable, count: number): Promise<Row[]> {
  const length = Math.min(count, table.size);
  return await table.rows(Array.from({ length }, (_, place) => place));
}

/** Refuses a place that a table does not have. */
export function checkPlaces(places: readonly number[], size: number): void {
  const wrong = places.find((place) => !Number.isInteger(place) || place < 0 || place >= size);
  if (wrong !== undefined) {
    throw new RangeError(`Cannot read row ${wrong} because the table has ${size} rows`);
  }
}

/** A table whose rows are computed from their places. */
export function computedTable(
  { size, digest, row }: { size: number; digest: string; row: (place: number) => Row },
): RowTable {
  return {
    size,
    digest,
    rows(places) {
      checkPlaces(places, size);
      return Promise.resolve(places.map(row));
    },
  };
}

/** A table of rows in memory. */
export function tableOf(
  rows: readonly Row[],
  digest: string,
  sources?: readonly number[],
): RowTable {
  const table = computedTable({ size: rows.length, digest, row: (place) => rows[place]! });
  return sources === undefined ? table : { ...table, sources };
}

/**
 * A table without the rows at `places`, which are in order. Its digest is that of the whole table,
 * which determines the omitted rows.
 */
export function withoutRows(table: RowTable, places: readonly number[]): RowTable {
  const size = table.size - places.length;
  return {
    size,
    digest: table.digest,
    sources: table.sources && sizesWithout(table.sources, places),
    rows(kept) {
      checkPlaces(kept, size);
      return table.rows(kept.map((place) => place + omittedBefore(place, places)));
    },
  };
}

function sizesWithout(sources: readonly number[], places: readonly number[]): number[] {
  let [from, at] = [0, 0];
  return sources.map((size) => {
    from += size;
    const begin = at;
    while (at < places.length && places[at]! < from) at++;
    return size - (at - begin);
  });
}

/** How many of the omitted `places` come before the kept row number `kept`. */
function omittedBefore(kept: number, places: readonly number[]): number {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (places[middle]! - middle <= kept) low = middle + 1;
    else high = middle;
  }
  return low;
}
