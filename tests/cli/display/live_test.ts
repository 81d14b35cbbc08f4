import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { LiveView } from "../../../cli/display/live.ts";
import { type EngineEvent, type EngineEventBody, ManualClock } from "../../../engine/mod.ts";
import { ESC, Terminal } from "./terminal.ts";

function view(
  screen: Terminal,
): { clock: ManualClock; live: LiveView; on: (event: EngineEventBody) => void } {
  const clock = new ManualClock();
  const live = new LiveView({ screen, now: () => clock.monotonic() });
  return { clock, live, on: (event) => live.on({ run: "r", at_ms: 0, ...event } as EngineEvent) };
}

const metrics = (values: Record<string, number>): EngineEventBody => ({
  type: "metrics",
  key: "k",
  metrics: values,
});
const closed = (round: number, times = 10): EngineEventBody => ({
  type: "round_closed",
  loop: "round",
  round,
  times,
  carried: {},
  tally: {},
  total: {},
});
const started = (stage: string): EngineEventBody => ({
  type: "stage_started",
  key: stage,
  stage,
  runs_on: "engine",
  phase: "other",
  attempt: 1,
});
const failed = (next_ms: number | null): EngineEventBody => {
  const error = {
    code: "worker_lost",
    cause_kind: "worker_lost",
    retryable: true,
    facts: {},
  } as const;
  const message = "Cannot continue because rank 0 died\n  | a log line\n  log: /x";
  return {
    type: "stage_failed",
    key: "round/1/train",
    stage: "train",
    attempt: 1,
    error: { ...error, message },
    next_ms,
  };
};

async function rounds(screen: Terminal, count: number) {
  const { clock, live, on } = view(screen);
  for (let round = 1; round <= count; round++) {
    on({ ...started("generate_slab"), key: "k" } as EngineEventBody);
    await clock.advance(2000);
    on(metrics({ "reward/mean": round / 10, "policy/loss": 0.5, "perf/generated_tokens": 1000 }));
    on({
      type: "stage_finished",
      key: "k",
      stage: "generate_slab",
      runs_on: "sampler",
      phase: "",
      ms: 1,
      output: 0,
    });
    on(closed(round));
  }
  return live;
}

Deno.test("LiveView on a pipe writes one line per round, under 200 characters, with reward, rate and time left", async () => {
  const screen = new Terminal({ tty: false });
  await rounds(screen, 3);
  deepStrictEqual(screen.written.split("\n"), [
    "round 1/10  reward 0.100  loss 0.5000  500 tokens/s",
    "round 2/10  reward 0.200  loss 0.5000  500 tokens/s  16 s left",
    "round 3/10  reward 0.300  loss 0.5000  500 tokens/s  14 s left",
    "",
  ]);
  const long = new Terminal({ tty: false });
  const { on } = view(long);
  on({ ...closed(1), loop: "round".repeat(80) } as EngineEventBody);
  strictEqual(long.written.length, 200); // 199 and the line's end.
});

Deno.test("LiveView on a terminal redraws in place: notes stay above, the live part is the newest only", async () => {
  const screen = new Terminal();
  const live = await rounds(screen, 3);
  live.note("a note");
  live.on({ run: "r", at_ms: 0, ...started("generate_slab") } as EngineEvent);
  deepStrictEqual(screen.lines, [
    "a note",
    "  now      generate_slab",
    "  progress round 3/10  reward 0.300  loss 0.5000  500 tokens/s  14 s left",
    "  reward   ▁▅█",
    "",
  ]);
  live.end();
  const kept = [
    "  progress round 3/10  reward 0.300  loss 0.5000  500 tokens/s  14 s left",
    "  reward   ▁▅█",
    "",
  ];
  deepStrictEqual(screen.lines, ["a note", ...kept]);
  live.end();
  deepStrictEqual(screen.lines, ["a note", ...kept]);
});

Deno.test("LiveView on 40 columns loses nothing: reward, loss, rate and time left take another line", async () => {
  const screen = new Terminal({ columns: 40 });
  await rounds(screen, 3);
  deepStrictEqual(screen.lines.slice(1, -1), [
    "  progress round 3/10  reward 0.300",
    "           loss 0.5000  500 tokens/s",
    "           14 s left",
    "  reward   ▁▅█",
  ]);
});

Deno.test("LiveView writes no minus before a zero", () => {
  const screen = new Terminal({ tty: false });
  const { on } = view(screen);
  on(metrics({ "reward/mean": -0.0001, "policy/loss": -0.00001, "optim/grad_norm": 0.5 }));
  on(closed(1));
  strictEqual(screen.written, "round 1/10  reward 0.000  loss 0.0000  grad 0.500  0 tokens/s\n");
});

Deno.test("LiveView shows what a stage logs in a line that stays", () => {
  const screen = new Terminal();
  view(screen).on({ type: "log", key: "k", text: "checkpoint x was set aside" });
  deepStrictEqual(screen.lines[0], "checkpoint x was set aside");
});

Deno.test("LiveView never writes a line wider than the terminal, as a wrapped line could not be redrawn", () => {
  for (const color of [true, false]) {
    const screen = new Terminal({ columns: 20, color });
    const { on } = view(screen);
    on(started("a_stage_with_a_name_that_is_long"));
    on(metrics({ "reward/mean": 0.1, "policy/loss": 1, "optim/grad_norm": 3 }));
    on(closed(1));
    strictEqual(screen.lines[0]!.length, 20); // The terminal itself refuses a longer one.
  }
});

Deno.test("LiveView paints only where colour is wanted", () => {
  for (const color of [true, false]) {
    const screen = new Terminal({ color });
    view(screen).on(started("train"));
    strictEqual(screen.written.includes(`${ESC}[2m`), color);
  }
});

Deno.test("LiveView tells a failure that is tried again by its first line, and leaves what is given up to the run's end", () => {
  const screen = new Terminal({ tty: false });
  const { on } = view(screen);
  on(failed(1000));
  on(failed(null));
  strictEqual(
    screen.written,
    "round/1/train failed (attempt 1), retrying: Cannot continue because rank 0 died\n",
  );
});

Deno.test("LiveView of a run that stops promises no retry, and says nothing of what only the stop ended", () => {
  const screen = new Terminal({ tty: false });
  const stop = new AbortController();
  const live = new LiveView({ screen, now: () => 0, stop: stop.signal });
  const on = (event: EngineEventBody) => live.on({ run: "r", at_ms: 0, ...event } as EngineEvent);
  const failure = failed(1000) as Extract<EngineEventBody, { type: "stage_failed" }>;
  const drained = { ...failure, error: { ...failure.error, code: "drained" as const } };
  stop.abort();
  on(drained);
  strictEqual(screen.written, "");
  on(failure);
  strictEqual(
    screen.written,
    "round/1/train failed (attempt 1), to be retried by resume: " +
      "Cannot continue because rank 0 died\n",
  );
});

Deno.test("LiveView on a terminal leaves an evaluation's line after end(), whatever was drawn after it", async () => {
  const screen = new Terminal();
  const { clock, live, on } = view(screen);
  on(metrics({ "reward/mean": 0.25 }));
  const evaluation = (name: string): EngineEventBody => {
    const counts = { problems: 2, graded: 2, right: 1, failed: 0, ungraded: 0, failures: {} };
    const value = { name, avg_at_k: 0.5, mean_reward: 0.5, pass_at: [0.5], ...counts };
    return { type: "note", kind: "note/evaluation", key: name, value };
  };
  on(evaluation("before"));
  on(started("train"));
  on(metrics({ "reward/mean": 0.5 }));
  on(closed(1, 1));
  on(evaluation("after"));
  on(started("export_policy"));
  await clock.advance(1000);
  const evaluated = () => screen.lines.filter((line) => line.startsWith("evaluation "));
  const shown = evaluated();
  deepStrictEqual(shown.map((line) => line.split(":")[0]), [
    "evaluation before",
    "evaluation after",
  ]);
  live.end();
  deepStrictEqual([evaluated(), screen.lines.at(-2)], [shown, "  reward   ▁█"]);
  live.note("run r is done");
  live.end();
  deepStrictEqual([evaluated(), screen.lines.at(-2)], [shown, "run r is done"]);
});

Deno.test("LiveView tells recoveries and evaluations in one line each", () => {
  const screen = new Terminal({ tty: false });
  const { on } = view(screen);
  const recovery = { cause: "worker_lost", action: "load_checkpoint", batches_redone: 2 };
  on({ type: "note", kind: "recovery", key: "k", value: recovery });
  const evaluation = {
    name: "after_sampled",
    problems: 16,
    avg_at_k: 0.25,
    graded: 60,
    right: 15,
    failed: 3,
    ungraded: 1,
    failures: { reward_error: 3, reward_none: 1 },
    mean_reward: 0.3,
    pass_at: [0.25, 0.4, 0.45, 0.5],
  };
  on({ type: "note", kind: "note/evaluation", key: "k", value: evaluation });
  match(
    screen.written,
    /^recovered from worker_lost: load_checkpoint, 2 batches redone\nevaluation after_sampled: 0\.250/,
  );
  match(
    screen.written,
    /right \(15 of 60\), failed 3 \(reward_error 3\), ungraded 1, .*pass@4 0\.500\n$/,
  );
});

Deno.test("LiveView.setup() replaces what is passing on a terminal, and writes every line on a pipe", () => {
  const [terminal, pipe] = [new Terminal(), new Terminal({ tty: false })];
  for (const screen of [terminal, pipe]) {
    const { live } = view(screen);
    live.setup({ text: "environment: it takes 1.2 GiB", passing: false });
    live.setup({ text: "environment: downloading torch, 5 s", passing: true });
    live.setup({ text: "environment: downloading torch, 10 s", passing: true });
  }
  deepStrictEqual(terminal.lines, [
    "environment: it takes 1.2 GiB",
    "  environment: downloading torch, 10 s",
    "",
  ]);
  const written = ["it takes 1.2 GiB", "downloading torch, 5 s", "downloading torch, 10 s"];
  strictEqual(pipe.written, written.map((text) => `environment: ${text}\n`).join(""));
});

Deno.test("LiveView warns at the first round of a stretch that takes no step, with the causes", () => {
  const screen = new Terminal({ tty: false });
  const { on } = view(screen);
  const close = (round: number, tally: Record<string, number>) =>
    on({ type: "round_closed", loop: "round", round, times: 4, carried: {}, tally, total: {} });
  close(1, { read: 8, trained: 8 });
  close(2, { read: 8, "filtered.zero_advantage": 7, "failed.reward_error": 1 });
  close(3, { read: 8, "filtered.zero_advantage": 8 });
  const warnings = screen.written.split("\n").filter((line) => line.startsWith("WARNING"));
  strictEqual(warnings.length, 1);
  match(
    warnings[0]!,
    /round 2: no step was taken because none of 8 groups had an advantage \(zero_advantage 7, reward_error 1\)/,
  );
});
