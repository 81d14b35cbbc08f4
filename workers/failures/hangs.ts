import { type EngineError, NoProgressError, TimeoutError_ } from "../../engine/mod.ts";
import { type FailureFacts, type FailurePlace, hangText } from "./failures.ts";
import type { RankState } from "../line/protocol.ts";

/** One rank's last report of progress. By the monotonic clock. */
export type RankProgress = { rank: number; phase: string; done: number; at_ms: number };

/**
 * What is known about ranks that are alive but make no progress. `ranks`: from the last heartbeat.
 */
export type Hang = { progress: RankProgress[]; ranks: readonly RankState[] };

/** Processes in these states do not run. */
const STANDS_STILL = new Set(["stopped", "traced", "waiting for the disk"]);

/**
 * The rank that the others wait for, and why: its process does not run, it alone reported nothing,
 * or it is behind the others. Null: none stands out.
 */
export function silentRank({ progress, ranks }: Hang): { rank: number; why: string } | null {
  const still = ranks.find(({ process_state }) => STANDS_STILL.has(process_state ?? ""));
  if (still) return { rank: still.rank, why: `its process is ${still.process_state}` };
  const mute = ranks.filter(({ rank }) => !progress.some((one) => one.rank === rank));
  if (progress.length > 0 && mute.length === 1) {
    return { rank: mute[0]!.rank, why: "it alone has reported no progress" };
  }
  const [last, ...others] = progress.toSorted((a, b) => a.at_ms - b.at_ms);
  const ahead = others.filter(({ phase, done }) => phase !== last!.phase || done > last!.done);
  if (!last || others.length === 0 || ahead.length < others.length) return null;
  return {
    rank: last.rank,
    why: `it got as far as ${last.phase} ${last.done}, the others further`,
  };
}

type HangPlace = FailurePlace & {
  op: string;
  log_dir: string;
  limit_ms: number;
  /** What was exceeded: the time without progress, or all the time that the operation had. */
  limit: "progress" | "time";
};

/**
 * The error for ranks that hang: which rank the others wait for, and where the agent saves the
 * evidence before it kills them.
 */
export function hangError(text: string, place: HangPlace, hang: Hang): EngineError {
  const { group, op, limit_ms, generation, log_dir } = place;
  const silent = silentRank(hang);
  const named = silent
    ? `${text}: the others wait for rank ${silent.rank} because ${silent.why}`
    : text;
  const kind = place.limit === "progress" ? "no_progress" as const : "timeout" as const;
  const failure: FailureFacts = {
    rank: silent?.rank ?? null,
    observed: silent ? "silent_rank" : "no_progress",
    role: "root",
    kind: "hang",
    cause: kind,
    action: "restart",
    fingerprint: `${kind}|${op}`,
    device: null,
  };
  const evidence = `${log_dir}/${group.replaceAll("/", "_")}.*gen${generation}*`;
  const facts = {
    group,
    op,
    limit_ms,
    generation,
    rank: silent?.rank,
    failure,
    evidence,
  };
  const Failure = kind === "no_progress" ? NoProgressError : TimeoutError_;
  return new Failure(hangText(named, place), facts);
}
