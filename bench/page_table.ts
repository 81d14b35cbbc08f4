/** A table that a benchmark writes into a page. */

/** In Markdown. */
export function pageTable(head: readonly string[], rows: readonly string[][]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join(
    "\n",
  );
}

/**
 * The page with a table at the place that `deno task bench NAME --write` fills.
 * @throws {Error} If the page has no such place.
 */
export function withTable(
  page: string,
  { bench, table }: { bench: string; table: string },
): string {
  const [begin, end] = [
    `<!-- Written by \`deno task bench ${bench} --write\`. -->`,
    "<!-- End. -->",
  ];
  const from = page.indexOf(begin);
  const to = page.indexOf(end, from);
  if (from < 0 || to < 0) {
    throw new Error(`Cannot write the table because the page has no lines '${begin}' and '${end}'`);
  }
  return `${page.slice(0, from)}${begin}\n\n${table}\n\n${page.slice(to)}`;
}
