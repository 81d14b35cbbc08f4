import type { DataFormat } from "./format.ts";

/** One JSON object per line. */
export const jsonLines: DataFormat = {
  name: "json_lines",
  endings: [".jsonl", ".ndjson", ".json"],
  compressible: true,
  counts: "line",
};
