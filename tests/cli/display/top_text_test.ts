import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { topScreen, topText } from "../../../cli/display/top_text.ts";
import { damagedFacts, type WatchedFacts } from "../../../cli/watched_run.ts";

const RUN: WatchedFacts = {
  id: "a",
  name: "a",
  status: "running",
  crashed: false,
  loop: "round",
  round: 3,
  rounds: 10,
  rewards: [0.1, 0.2, 0.3],
  tokens_per_second: 500,
  left_s: 70,
  engine: { pid: 7, host: "far" },
  trouble: null,
  damaged: null,
};

Deno.test("topText() has a line for each run, and says of a damaged one why", () => {
  const waiting = { ...damagedFacts("c", ""), status: "queued", damaged: null };
  const crashed = {
    ...RUN,
    id: "b",
    status: "interrupted",
    crashed: true,
    tokens_per_second: null,
  };
  const runs = [RUN, { ...crashed, left_s: null, rounds: null, trouble: "x failed: no" }, waiting];
  deepStrictEqual(topText([...runs, damagedFacts("d", "Cannot read it\nmore")]).split("\n"), [
    "run  status   round       reward  curve  tokens/s  left        engine    last",
    "a    running  round 3/10  0.300   ▁▅█    500       1 min 10 s  7 on far",
    "b    crashed  round 3     0.300   ▁▅█    -         -           7 on far  x failed: no",
    "c    queued   -           -              -         -           -",
    "d    damaged  -           -              -         -           -         Cannot read it",
  ]);
  strictEqual(topText([]), "no run to watch: start one with 'run CONFIG'");
});

Deno.test("topText() shows no control character of a host or a message", () => {
  const text = topText([{ ...RUN, engine: { pid: 1, host: "\x1b[2J" }, trouble: "a\tb\x07" }]);
  strictEqual(text.split("\n")[1]!.endsWith("1 on \\u001b[2J  a b\\u0007"), true);
});

Deno.test("topScreen() fits a terminal: no line wraps, and the runs that do not fit are counted", () => {
  const runs = ["a", "b", "c", "d", "e"].map((id) => ({ ...RUN, id }));
  deepStrictEqual(topScreen(runs, { columns: 12, rows: 5 }).split("\n"), [
    "run  status ",
    "a    running",
    "b    running",
    "and 3 more",
  ]);
  strictEqual(topScreen(runs, { columns: 12, rows: 7 }).split("\n").length, 6);
});
