import { deepStrictEqual } from "node:assert/strict";
import { runText } from "../../../cli/display/run_text.ts";
import type { Home, RunView } from "../../../runs/mod.ts";

const home = { dir: "/home", storeUrl: null, isStore: () => false } as unknown as Home;
const NEW: RunView = {
  id: "a",
  name: "a",
  status: "queued",
  queue: null,
  priority: 0,
  parent: null,
  graph: "online",
  graph_hash: "0123456789abcdef",
  epoch: 1,
  engine_pid: null,
  workers: [],
  loop: null,
  round: 0,
  policy: null,
  rows: [],
  mixture: [],
  recoveries: [],
  replans: [],
  settings: [],
  ledger: { read: 0, trained: 0, filtered: {}, stale: 0, failed: {}, pending: 0 },
  generated: { groups: 0, samples: 0, tokens: 0 },
  untrained: null,
  evaluations: [],
  metrics: {},
  error: null,
  created_at: "",
  updated_at: "",
};
const lines = (changes: Partial<RunView>) => runText({ ...NEW, ...changes }, home).split("\n");
/** The lines that a change adds or replaces. */
const added = (changes: Partial<RunView>) => {
  const before = new Set(lines({}));
  return lines(changes).filter((line) => !before.has(line));
};

Deno.test("runText() of a run that has not begun", () => {
  deepStrictEqual(lines({}), [
    "run        a",
    "status     queued",
    "graph      online 0123456789ab, epoch 1",
    "round      0",
    "policy     -",
    "ledger     read 0 = trained 0 + filtered 0 + stale 0 + failed 0 + pending 0",
    "generated  0 groups, 0 samples, 0 tokens",
  ]);
});

Deno.test("runText() of a fork that an engine executes", () => {
  const parent = { run: "b", loop: "round", round: 2 };
  const workers = [{ group: "trainer", rank: 0, pid: 7, state: "ready" }] as RunView["workers"];
  const changes = { name: "mine", status: "running", engine_pid: 4, queue: "night", parent };
  deepStrictEqual(added({ ...changes, priority: 3, workers, loop: "round", round: 3 }), [
    "run        a (mine)",
    "status     running, engine pid 4",
    "queue      night, priority 3",
    "parent     b, up to round/2",
    "round      round 3",
    "worker     trainer rank 0 pid 7 ready",
  ]);
});

Deno.test("runText() counts filtered and failed draws by reason", () => {
  const counts = { filtered: { zero_advantage: 2, too_long: 1 }, failed: { timeout: 4 } };
  const ledger = { read: 9, trained: 1, stale: 1, pending: 0, ...counts };
  deepStrictEqual(added({ ledger }), [
    "ledger     read 9 = trained 1 + filtered zero_advantage 2, too_long 1 + stale 1 + " +
    "failed timeout 4 + pending 0",
  ]);
});

Deno.test("runText() names rows only if some were too long", () => {
  const split = { split: "train", rows: 10, dropped: 0, truncated: 0, longest_prompt_tokens: 99 };
  const rows = [split, { ...split, dropped: 2 }, { ...split, split: "test", truncated: 3 }];
  deepStrictEqual(added({ rows: rows as RunView["rows"] }), [
    "rows       train: 10, 2 dropped as too long (the longest prompt has 99 tokens)",
    "rows       test: 10, 3 truncated as too long (the longest prompt has 99 tokens)",
  ]);
});

Deno.test("runText() says what resumes, replans and recoveries changed", () => {
  const replan = { round: null, cause: "resume", field: "trainer.ranks", from: 1, to: 2 };
  const found = {
    replans: [replan, { ...replan, round: 4, cause: "out_of_memory" }],
    settings: [{ path: "workers.hub_port", to: 8080 }],
    recoveries: [{
      cause: "killed",
      action: "replaced",
      batches_redone: 2,
      group: "trainer",
      seconds: 1.25,
    }],
  } as unknown as Partial<RunView>;
  deepStrictEqual(added(found), [
    "recovery   killed: replaced, 2 batches of trainer redone in 1.3 s",
    "replan     at a resume, resume: trainer.ranks 1 -> 2",
    "replan     in round 4, out_of_memory: trainer.ranks 1 -> 2",
    "setting    workers.hub_port - -> 8080",
  ]);
});

Deno.test("runText() says what was drawn of each source of a mixture, and what is left", () => {
  const mixture = [
    { name: "math", rows: 100, drawn: 30, repeated: 0, share: 0.75, recent: 0.5 },
    { name: "code", rows: 8, drawn: 10, repeated: 2, share: 0.25, recent: null },
  ];
  deepStrictEqual(added({ mixture }), [
    "source     math: 30 draws of 100 rows, 70 left, share 0.750, recent reward 0.500",
    "source     code: 10 draws of 8 rows, exhausted, 2 repeated, share 0.250",
  ]);
});
