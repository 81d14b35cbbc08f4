import { arrow } from "./arrow.ts";
import { csv } from "./csv.ts";
import type { DataFormat } from "./format.ts";
import { jsonLines } from "./json_lines.ts";
import { parquet } from "./parquet.ts";

/** Every format of files that hold rows: one line each. */
export const FORMATS: readonly DataFormat[] = [jsonLines, csv, parquet, arrow];

/** How a file is compressed, by the ending of its name. */
const COMPRESSIONS = { ".gz": "gzip", ".zst": "zstd" } as const;
/** A compression of whole files. */
export type Compression = (typeof COMPRESSIONS)[keyof typeof COMPRESSIONS];

/** A file's format and compression by its name; a format is null if its ending is unknown. */
export function formatOf(
  path: string,
): { format: DataFormat | null; compression: Compression | null } {
  const name = path.toLowerCase();
  const packed = Object.entries(COMPRESSIONS).find(([ending]) => name.endsWith(ending));
  const inner = packed === undefined ? name : name.slice(0, -packed[0].length);
  const format = FORMATS.find((one) =>
    one.endings.some((ending) => inner.endsWith(ending)) &&
    (packed === undefined || one.compressible)
  );
  return { format: format ?? null, compression: packed?.[1] ?? null };
}

/** The endings that a name may have, for errors and pages. */
export function knownEndings(): string {
  const endings = FORMATS.flatMap((format) => format.endings);
  return `${endings.join(", ")}, and ${
    Object.keys(COMPRESSIONS).join(" or ")
  } after those of text formats`;
}
