/** The end of a loop by a metric, before its last round. */
import type { OnlineConfig } from "../configs/mod.ts";
import type { Policy } from "../data/mod.ts";
import type { GraphBuilder, Ref } from "../engine/mod.ts";
import { judgeProgress, type Progress } from "./stages/evaluation/judge_progress.ts";

/** What ends a loop early; absent or null: nothing does. */
export type Stopping = { stop?: OnlineConfig["stop"] };

/** What every round passes on about the progress so far; nothing if nothing ends the loop. */
export function progressCarried(g: GraphBuilder, { stop }: Stopping): { progress?: Ref<Progress> } {
  return stop ? { progress: g.constant({ best: null, round: 0, by: null }) } : {};
}

/** The option of a loop whose body returns `done`. */
export function untilDone({ stop }: Stopping): { until?: "done" } {
  return stop ? { until: "done" } : {};
}

/** A round's end as it is judged: its last round so far, and what the body returns. */
type Judged = {
  last: Ref<number> | number;
  returned: { progress?: Ref<Progress>; done: Ref<boolean> };
};

/** Judges an evaluated round. `progress`: what the round before passed on. */
export function judgedRound(
  r: GraphBuilder,
  { stop, rounds }: Stopping & { rounds: number },
  at: { policy: Ref<Policy>; round: Ref<number>; progress(): Ref<Progress> },
): Judged {
  // Without a stop no `until` reads `done`.
  if (!stop) return { last: rounds, returned: {} as Judged["returned"] };
  const { policy, round } = at;
  const judged = r.stage(judgeProgress, { policy, round, rounds, stop, progress: at.progress() });
  return {
    last: judged.field("last"),
    returned: { progress: judged.field("progress"), done: judged.field("done") },
  };
}
