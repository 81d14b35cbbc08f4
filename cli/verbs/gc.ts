import { type Amount, BadDataError } from "../../engine/mod.ts";
import { collectGarbage, type GcReport, type Home } from "../../runs/mod.ts";
import { collectEnvironments, environmentsDir } from "../../workers/mod.ts";
import { print, printJson, size, table } from "../display/output.ts";
import { defineVerb } from "../verb.ts";
import { flag, json, text, whole } from "../options.ts";

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
    accept: text(
      "<code>",
      "also remove the files that no journal names and that `gc` has listed with this code",
    ),
    environments: flag(
      "instead remove unused Python environments, and cached packages that none of them has; " +
        "needs no home",
    ),
    younger_than: whole("<hours>", "keep anything younger (default: 1)", { least: 0 }),
  },
  action: ({ args, flags, globals }) =>
    flags.environments
      ? removeEnvironments(args.runs, flags)
      : globals.withHome((home) => removeGarbage(home, args.runs, flags)),
});

type GcFlags = {
  json?: boolean;
  dry_run?: boolean;
  rows?: boolean;
  accept?: string;
  environments?: boolean;
  /** Days. */
  logs_older_than?: number;
  /** Hours. */
  younger_than?: number;
};

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** What an environment is kept for after it was asked for, if `--younger-than` says nothing. */
const YOUNG_HOURS = 1;

async function removeEnvironments(runs: string[], flags: GcFlags): Promise<void> {
  if (runs.length > 0 || flags.rows || (flags.logs_older_than ?? flags.accept) !== undefined) {
    throw new BadDataError(
      "Cannot collect runs and environments together because environments belong to no run. " +
        "Fix: run `gc --environments` on its own",
      { runs },
    );
  }
  const { environments, leftovers, cache, bytes, kept } = await collectEnvironments({
    dir: environmentsDir(),
    dry_run: flags.dry_run,
    younger_than_ms: (flags.younger_than ?? YOUNG_HOURS) * HOUR_MS,
  });
  const dry_run = flags.dry_run === true;
  if (flags.json) return printJson({ dry_run, environments, leftovers, cache, bytes, kept });
  const stays = kept.map(({ environment, why }) => `kept ${environment}: ${why}`);
  print(amounts({ environments, leftovers, cache }, { bytes, stays, dry_run }));
}

async function removeGarbage(home: Home, runs: string[], flags: GcFlags): Promise<void> {
  const report = await collectGarbage(home, {
    runs: runs.length > 0 ? runs : undefined,
    dry_run: flags.dry_run,
    rows: flags.rows,
    accept: flags.accept,
    logs_older_than_ms: flags.logs_older_than === undefined
      ? undefined
      : flags.logs_older_than * DAY_MS,
    younger_than_ms: flags.younger_than === undefined ? undefined : flags.younger_than * HOUR_MS,
  });
  if (flags.json) printJson({ dry_run: flags.dry_run === true, ...report });
  else print(describe(report, flags.dry_run === true));
}

function describe(report: GcReport, dry_run: boolean): string {
  const { bytes, kept, ...collected } = report;
  const stays = kept.map(({ run, what, why }) =>
    `kept ${what}${run === null ? "" : ` of ${run}`}: ${why}`
  );
  return amounts(collected, { bytes, stays, dry_run });
}

function amounts(
  collected: Record<string, Amount>,
  { bytes, stays, dry_run }: { bytes: number; stays: string[]; dry_run: boolean },
): string {
  const rows = Object.entries(collected).map((
    [what, amount],
  ) => [what, String(amount.count), size(amount.bytes)]);
  const total = `${dry_run ? "would free" : "freed"} ${size(bytes)}`;
  return [table(["what", "count", "size"], rows), ...stays, total].join("\n");
}
