import type { DataFormat } from "./format.ts";

/**
 * Apache Arrow's stream of record batches, as `datasets` writes it: rows as from Parquet. Two
 * batches are in memory at a time; `datasets` makes them of at most 1000 rows.
 */
export const arrow: DataFormat = {
  name: "arrow",
  endings: [".arrow"],
  compressible: false,
  counts: "row",
  async *rows(file) {
    // The library takes 0.1 s to load: no command waits for it without such a file.
    const { arrowRows } = await import("./arrow_rows.ts");
    yield* arrowRows(file);
  },
};
