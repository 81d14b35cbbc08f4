import type { WatchedFacts } from "../watched_run.ts";
import { duration, fixed, table } from "./output.ts";
import { sparkline } from "./sparkline.ts";
import { visible } from "./visible.ts";

const HEADER = ["run", "status", "round", "reward", "curve", "tokens/s", "left", "engine", "last"];
/** Bars of a run's reward curve. */
const POINTS = 12;

/** What `top` prints: a line for each run. */
export function topText(runs: readonly WatchedFacts[]): string {
  if (runs.length === 0) return "no run to watch: start one with 'run CONFIG'";
  return table(HEADER, runs.map((run) => cells(run).map(oneLine)));
}

/** The same on a terminal of this size: no line wraps, and the newest runs come first. */
export function topScreen(
  runs: readonly WatchedFacts[],
  { columns, rows }: { columns: number; rows: number },
): string {
  const lines = topText(runs).split("\n");
  const fits = Math.max(2, rows - 1); // The cursor takes the last row.
  const hidden = lines.length - fits;
  const shown = hidden > 0 ? [...lines.slice(0, fits - 1), `and ${hidden + 1} more`] : lines;
  return shown.map((line) => [...line].slice(0, columns).join("")).join("\n");
}

function cells(run: WatchedFacts): string[] {
  const { id, status, crashed, loop, round, rounds, rewards, engine, trouble, damaged } = run;
  const { tokens_per_second: rate, left_s } = run;
  if (damaged !== null) return [id, "damaged", "-", "-", "", "-", "-", "-", damaged];
  return [
    id,
    crashed ? "crashed" : status!,
    loop === null ? "-" : `${loop} ${round}${rounds === null ? "" : `/${rounds}`}`,
    rewards.length === 0 ? "-" : fixed(rewards.at(-1)!, 3),
    rewards.length > 1 ? sparkline(rewards, POINTS) : "",
    rate === null ? "-" : String(rate),
    left_s === null ? "-" : duration(left_s),
    engine === null ? "-" : `${engine.pid} on ${engine.host}`,
    trouble ?? "",
  ];
}

/** Columns are as wide as what is shown. */
function oneLine(cell: string): string {
  return visible(cell.replaceAll(/[\t\n]/g, " "));
}
