/**
 * Whether a row comes from one of these sources: its id starts with the source's name (`math/12`).
 * Absent: from any.
 */
export function isFromSources(row_id: string, sources: readonly string[] | undefined): boolean {
  return sources === undefined || sources.includes(row_id.slice(0, row_id.indexOf("/")));
}
