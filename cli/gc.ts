import { collectGarbage, type GcReport, type Home } from "../runs/mod.ts";
import { print, printJson, size, table } from "./output.ts";

export type GcFlags = {
  json?: boolean;
  dryRun?: boolean;
  rows?: boolean;
  /** Days. */
  logsOlderThan?: number;
  /** Hours. */
  youngerThan?: number;
};

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** `gc [RUN ...]`: removes what nothing can reach, and says how much it was. */
export async function gcCommand(home: Home, runs: string[], flags: GcFlags): Promise<void> {
  const report = await collectGarbage(home, {
    runs: runs.length > 0 ? runs : undefined,
    dry_run: flags.dryRun,
    rows: flags.rows,
    logs_older_than_ms: flags.logsOlderThan === undefined ? undefined : flags.logsOlderThan * DAY_MS,
    younger_than_ms: flags.youngerThan === undefined ? undefined : flags.youngerThan * HOUR_MS,
  });
  if (flags.json) printJson({ dry_run: flags.dryRun === true, ...report });
  else print(describe(report, flags.dryRun === true));
}

function describe(report: GcReport, dryRun: boolean): string {
  const { bytes, kept, ...amounts } = report;
  const rows = Object.entries(amounts).map(([what, amount]) => [what, String(amount.count), size(amount.bytes)]);
  const total = `${dryRun ? "would free" : "freed"} ${size(bytes)}`;
  const stays = kept.map(({ run, what, why }) => `kept ${what} of ${run}: ${why}`);
  return [table(["what", "count", "size"], rows), ...stays, total].join("\n");
}
