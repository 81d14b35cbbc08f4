import { deepStrictEqual, match, ok } from "node:assert/strict";
import { NoProgressError, TimeoutError_ } from "../../../engine/mod.ts";
import { hangError, type RankProgress, silentRank } from "../../../workers/failures/hangs.ts";
import type { RankState } from "../../../workers/mod.ts";

const state = (rank: number, process_state = "sleeping"): RankState => ({
  rank,
  pid: 1,
  process_start: "0",
  state: "busy",
  exit_code: null,
  signal: null,
  process_state,
});
const at = (rank: number, done: number, at_ms: number, phase = "micro_batch"): RankProgress => ({
  rank,
  phase,
  done,
  at_ms,
});
const RANKS = [state(0), state(1), state(2)];

Deno.test("silentRank() is the one whose process is stopped, whatever it reported", () => {
  const ranks = [state(0), state(1), state(2, "waiting for the disk")];
  deepStrictEqual(silentRank({ progress: [at(0, 1, 5), at(1, 2, 6), at(2, 2, 7)], ranks }), {
    rank: 2,
    why: "its process is waiting for the disk",
  });
});

Deno.test("silentRank() is the only one without progress, or the one behind all others", () => {
  deepStrictEqual(silentRank({ progress: [at(0, 1, 5), at(2, 1, 6)], ranks: RANKS })?.rank, 1);
  const behind = [at(0, 3, 9), at(1, 2, 5), at(2, 3, 8)];
  deepStrictEqual(silentRank({ progress: behind, ranks: RANKS }), {
    rank: 1,
    why: "it got as far as micro_batch 2, the others further",
  });
});

Deno.test("silentRank() is nobody where no one stands out", () => {
  for (
    const progress of [[], [at(0, 2, 1), at(1, 2, 2), at(2, 2, 3)], [
      at(0, 2, 1),
      at(1, 2, 2),
      at(2, 3, 3),
    ]]
  ) {
    deepStrictEqual(silentRank({ progress, ranks: RANKS }), null);
  }
  deepStrictEqual(silentRank({ progress: [at(0, 2, 1)], ranks: [state(0)] }), null);
});

Deno.test("hangError() names the rank that is waited for and where the evidence is", () => {
  const place = {
    run: "r",
    group: "sampler/0",
    generation: 3,
    op: "train",
    log_dir: "/l",
    limit_ms: 9,
  };
  const hang = { progress: [], ranks: [state(0), state(1, "stopped")] };
  const error = hangError("Cannot finish", { ...place, limit: "progress" }, hang);
  ok(error instanceof NoProgressError && error.retryable);
  match(
    error.message,
    /^Cannot finish: the others wait for rank 1 because its process is stopped\n {2}stacks/,
  );
  const { failure, evidence } = error.facts as {
    failure: Record<string, unknown>;
    evidence: string;
  };
  deepStrictEqual([failure.rank, failure.observed, failure.kind, failure.cause, evidence], [
    1,
    "silent_rank",
    "hang",
    "no_progress",
    "/l/sampler_0.*gen3*",
  ]);
  const late = hangError("Cannot finish", { ...place, limit: "time" }, {
    progress: [],
    ranks: RANKS,
  });
  ok(late instanceof TimeoutError_ && (late.facts.failure as { rank: null }).rank === null);
});
