import { collectGarbage, type GcReport, type Home } from "../../runs/mod.ts";
import { print, printJson, size, table } from "../output.ts";
import { defineVerb } from "../verb.ts";
import { flag, json, whole } from "../options.ts";

/** `gc [RUN ...]`: removes what nothing can reach, and says how much it was. */
export const gcVerb = defineVerb({
  name: "gc",
  about: "remove data that nothing can reach",
  arguments: { "[runs...]": "only these runs (default: all)" },
  options: {
    json,
    dry_run: flag("only report what would be removed"),
    rows: flag(
      "also remove rows and batches of ended runs that no checkpoint, fork or open round can reach",
    ),
    logs_older_than: whole("<days>", "also remove older logs of all attempts but the last", {
      least: 0,
    }),
    younger_than: whole("<hours>", "keep anything younger (default: 1)", { least: 0 }),
  },
  action: ({ args, flags, globals }) =>
    globals.withHome((home) => removeGarbage(home, args.runs, flags)),
});

type GcFlags = {
  json?: boolean;
  dry_run?: boolean;
  rows?: boolean;
  /** Days. */
  logs_older_than?: number;
  /** Hours. */
  younger_than?: number;
};

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

async function removeGarbage(home: Home, runs: string[], flags: GcFlags): Promise<void> {
  const report = await collectGarbage(home, {
    runs: runs.length > 0 ? runs : undefined,
    dry_run: flags.dry_run,
    rows: flags.rows,
    logs_older_than_ms: flags.logs_older_than === undefined
      ? undefined
      : flags.logs_older_than * DAY_MS,
    younger_than_ms: flags.younger_than === undefined ? undefined : flags.younger_than * HOUR_MS,
  });
  if (flags.json) printJson({ dry_run: flags.dry_run === true, ...report });
  else print(describe(report, flags.dry_run === true));
}

function describe(report: GcReport, dryRun: boolean): string {
  const { bytes, kept, ...amounts } = report;
  const rows = Object.entries(amounts).map((
    [what, amount],
  ) => [what, String(amount.count), size(amount.bytes)]);
  const total = `${dryRun ? "would free" : "freed"} ${size(bytes)}`;
  const stays = kept.map(({ run, what, why }) => `kept ${what} of ${run}: ${why}`);
  return [table(["what", "count", "size"], rows), ...stays, total].join("\n");
}
