import type { DataPlace } from "../data/mod.ts";
import { BadDataError } from "../engine/mod.ts";

/** `place`: null if it is not known. `facts`: what the error also has. */
type Refused = { why: string; place: DataPlace | null; facts?: Record<string, unknown> };

/** A row that the model's template or tokenizer refuses. */
export function refusedRow(row_id: string, { why, place, facts }: Refused): BadDataError {
  const at = place && (place.line === undefined ? ` row ${place.row}` : `:${place.line}`);
  const where = place === null ? "" : ` (${place.file}${at})`;
  return new BadDataError(`Cannot use row '${row_id}'${where}: ${why}`, {
    rows: [row_id],
    ...facts,
  });
}
