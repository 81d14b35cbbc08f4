/** The record of the long suites: the table of `docs/long_tests.md`, a row for each. */

/** How a long suite last ended. `commit` ends in `+` if files differed from it. */
export type LongRun = {
  name: string;
  /** What the suite shows. */
  about: string;
  commit: string;
  date: string;
  passed: number;
  failed: number;
  minutes: number;
};

const ROW =
  /^\| `([\w-]+)` \| (.+) \| `([0-9a-f]+\+?)` \| (\d{4}-\d\d-\d\d) \| (\d+) \| (\d+) \| ([\d.]+) \|$/;

/** The rows of the page by the suite's name. */
export function longRuns(page: string): Map<string, LongRun> {
  const rows = page.split("\n").flatMap((line) => {
    const [, name, about, commit, date, ...numbers] = ROW.exec(line) ?? [];
    if (name === undefined) return [];
    const [passed, failed, minutes] = numbers.map(Number);
    return [{ name, about, commit, date, passed, failed, minutes } as LongRun];
  });
  return new Map(rows.map((row) => [row.name, row]));
}

/** The page with this row in place of the suite's older one; rows are sorted by name. */
export function withLongRun(page: string, run: LongRun): string {
  const rows = [...longRuns(page).values()].filter(({ name }) => name !== run.name);
  const lines = page.trimEnd().split("\n").filter((line) => !ROW.test(line));
  const table = [...rows, run].sort((a, b) => (a.name < b.name ? -1 : 1)).map(
    (row) => {
      const { name, about, commit, date, passed, failed, minutes } = row;
      return `| \`${name}\` | ${about} | \`${commit}\` | ${date} | ${passed} | ${failed} | ${minutes} |`;
    },
  );
  return [...lines, ...table].join("\n") + "\n";
}
