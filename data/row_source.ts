/** The source's name that a row id begins with (`math/12`); null: its source has no name. */
export function sourceOfRow(row_id: string): string | null {
  const end = row_id.indexOf("/");
  return end < 0 ? null : row_id.slice(0, end);
}
