/** A group to score, and functions that the reward worker runs. */
import type { Trajectory } from "../../data/mod.ts";
import { processOf, type ScoringFunction } from "../../rewards/mod.ts";

const trajectory = (text: string): Trajectory => ({
  sample: 0,
  tokens: Int32Array.from([1, 2, 3]),
  action_mask: Uint8Array.from([0, 1, 1]),
  behaviour_logp: new Float32Array(3),
  versions: [],
  stop: "stop",
  text,
});

export const there = (name: string): ScoringFunction => ({
  name,
  weight: 1,
  score: () => 0,
  runs_on: "process",
  source: "my.py:score",
  timeout_ms: 1000,
  process: processOf({}),
});

export const group = (functions: ScoringFunction[], texts: string[]) => ({
  functions,
  prompt: "p",
  row: { row_id: "r", prompt: "p", answer: "bb", columns: { extra: 7 } },
  trajectories: texts.map(trajectory),
});

export const options = {
  key: "score_group/x",
  attempt: 1,
  signal: new AbortController().signal,
  record: () => Promise.resolve(),
};
