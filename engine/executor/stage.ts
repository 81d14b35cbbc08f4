/** Runs one stage to its recorded result: replay, attempts, limits, retries. */
import { z } from "zod";
import { canonicalJson } from "../canonical.ts";
import {
  BadDataError,
  type ErrorJson,
  errorToJson,
  NoProgressError,
  RemadeDifferentlyError,
} from "../errors.ts";
import { TimeoutError_, UserCodeError } from "../errors.ts";
import { errorFromJson, StageFailedError } from "../errors.ts";
import { type Execution, quietly } from "./executor.ts";
import { BodyContext } from "./context.ts";
import { checkChildren, checkInput, forget, isTriedAgain } from "./drift.ts";
import { Frame } from "./frame.ts";
import { inputRecord } from "./input_record.ts";
import type { StageTask } from "./task.ts";
import { addTally, type Entry, type Failure, type Intent } from "../journal/tree.ts";
import { randomStream } from "./random.ts";
import { nextAttempt } from "./retry.ts";
import type { Release } from "../graph/slots.ts";
import type { Stage } from "../graph/stage.ts";
import type { NewRow } from "../stores/store.ts";

/** How long a body that was asked to stop may delay the next attempt. */
const ABANDON_MS = 5000;

/**
 * `input_json`: of an `InputRecord`. `recorded`: an output whose files are gone; the new output must
 * be the same.
 */
type Checked = StageTask & { input_hash: string; input_json: string; recorded?: unknown };

/**
 * The stage's output, from the journal if recorded. Rejects when the stage has failed permanently.
 */
export async function runStage(execution: Execution, task: StageTask): Promise<unknown> {
  const { entry, stage } = task;
  const { hash: input_hash, json: input_json } = inputRecord(stage, task.input);
  const checked: Checked = { ...task, input_hash, input_json };
  if (entry.input_hash !== undefined && entry.input_hash !== input_hash) {
    checkInput(checked, execution.settings);
  }
  if (await isTriedAgain(task, execution.settings.journal)) forget(task);
  if (entry.result !== undefined) {
    const output = await execution.settings.journal.output(entry.key, entry.result);
    if (!execution.remaking.has(entry.key)) {
      const row = task.staged?.(output);
      if (row) await execution.settings.journal.append([row], stage.phase);
      return output;
    }
    checked.recorded = output;
    forget(task);
  }
  return await settled(execution, checked).finally(() => execution.remaking.over(entry.key));
}

/** The output of the first attempt that succeeds within the budget. */
async function settled(execution: Execution, checked: Checked): Promise<unknown> {
  const { entry } = checked;
  for (;;) {
    const last = entry.failures.at(-1);
    if (last && last.next_ms === null) throw exhausted(entry, last.error);
    if (last) await sleepUntil(execution, last.next_ms ?? 0);
    if (checked.parent?.closed) throw checked.parent.closed;
    const outcome = await attempt(execution, checked);
    if ("output" in outcome) return outcome.output;
  }
}

/** @throws {RemadeDifferentlyError} If it differs from what the run continued with. */
function checkRemade({ stage: { leaves }, entry, recorded }: Checked, output: unknown): void {
  if (!leaves || recorded === undefined) return;
  const [before, now] = [leaves.identity(recorded), leaves.identity(output)];
  if (before === now) return;
  throw new RemadeDifferentlyError(
    `Cannot recreate the files of '${entry.key}' because they differ: ${now}, recorded ` +
      `${before}. Fix: restore its files from a copy, or resume ` +
      "on the same hardware and package versions",
    { key: entry.key, recorded: before, found: now },
  );
}

async function sleepUntil(
  { settings: { clock, backoff }, signal }: Execution,
  at_ms: number,
): Promise<void> {
  // It is longer only if the wall clock was set back since.
  const wait = Math.min(at_ms - clock.now(), backoff.max_ms);
  if (wait > 0) await clock.sleep(wait, signal);
}

function exhausted(entry: Entry, error: ErrorJson): StageFailedError {
  return new StageFailedError(
    `Cannot finish '${entry.key}' after ${entry.attempts} attempt(s): ${error.message}`,
    { key: entry.key, attempts: entry.attempts, error },
    { cause: errorFromJson(error), cause_kind: error.cause_kind },
  );
}

type Outcome = { output: unknown } | { failed: Failure };

async function attempt(execution: Execution, task: Checked): Promise<Outcome> {
  await execution.remaking.turnOf(task.entry.key);
  if (execution.state !== "open") await execution.park();
  const release: Release = task.slots === undefined
    ? () => {}
    : await execution.settings.slots.reserve(task.slots);
  try {
    // The state may have changed while waiting for the slot.
    if (execution.state !== "open") await execution.park();
    return await attemptInSlot(execution, task);
  } finally {
    release();
  }
}

async function attemptInSlot(execution: Execution, task: Checked): Promise<Outcome> {
  const { entry, stage } = task;
  const { clock } = execution.settings;
  const frame = new Frame(execution, { task, attempt: ++entry.attempts });
  frame.begin();
  try {
    await recordIntent(execution, task);
    const { name, runs_on, phase } = stage;
    execution.event({
      type: "stage_started",
      key: entry.key,
      stage: name,
      runs_on,
      phase,
      attempt: frame.attempt,
    });
    const started = clock.monotonic();
    const output = await runBody(execution, { task, frame });
    const ms = Math.round(clock.monotonic() - started);
    const { kept, durable } = await recordResult(execution, { task, frame, output, ms });
    const settled = durable.then(() => {
      entry.result = kept.value;
      entry.recorded_seq = Infinity;
      entry.drop();
      frame.announceNotes();
      frame.settle();
      execution.event({
        type: "stage_finished",
        key: entry.key,
        stage: name,
        runs_on,
        phase,
        ms,
        output: kept.output,
      });
    });
    // The next reader in the graph waits for it, unless it is eager. A parent's body does not wait.
    if (task.parent) await settled;
    else quietly(settled);
    return { output: kept.output };
  } catch (error) {
    // A failure of the run, or of the body that called this one, is not this stage's.
    if (execution.reason) throw execution.reason;
    if (task.parent?.closed) {
      frame.settle();
      throw task.parent.closed;
    }
    const failed = await recordFailure(execution, { task, error });
    frame.settle();
    return { failed };
  } finally {
    frame.end();
  }
}

/**
 * Durable before work starts outside the engine; for the engine's own stages it shares the next
 * commit. The body's input is also durable when it starts, unless the stage is eager: then its
 * operations wait for all of this.
 */
async function recordIntent({ settings: { journal } }: Execution, task: Checked): Promise<void> {
  const { entry, stage, input_hash, input_json } = task;
  const { name, version, runs_on, phase } = stage;
  const rest: Omit<Intent, "attempt"> = { stage: name, version, runs_on, phase };
  // Canonical: "attempt", then "input" or "parts", then the rest.
  const value = `{"attempt":${entry.attempts},${input_json},${canonicalJson(rest).slice(1)}`;
  const row: NewRow = { kind: "intent", key: entry.key, input_hash, value };
  entry.input_hash = input_hash;
  entry.intent = value;
  if (runs_on !== "engine") {
    const recorded = quietly(journal.append([row], phase));
    return stage.eager ? undefined : await recorded;
  }
  const unsettled = stage.eager ? null : journal.unsettled();
  if (unsettled) await unsettled;
  journal.defer([row], phase);
}

/** The body's parsed output, within the stage's limits. */
async function runBody(
  execution: Execution,
  { task, frame }: { task: Checked; frame: Frame },
): Promise<unknown> {
  const { stage, entry } = task;
  const input = stage.input.safeParse(task.input);
  if (!input.success) {
    throw new BadDataError(
      `Cannot start '${entry.key}' because its input does not match the schema: ` +
        `${z.prettifyError(input.error)}`,
    );
  }
  const body = stage.body(input.data, new BodyContext(frame, runStage));
  const limited = stage.timeout_ms !== undefined || stage.no_progress_ms !== undefined;
  const raw = limited ? await withinLimits(execution, { stage, frame, body }) : await body;
  const output = stage.output.safeParse(raw);
  if (!output.success) {
    throw new UserCodeError(
      `Cannot record '${entry.key}' because its output does not match the schema: ${
        z.prettifyError(output.error)
      }`,
    );
  }
  checkRemade(task, output.data);
  frame.checkAwaited();
  checkChildren(task, { frame, journal: execution.settings.journal });
  return output.data;
}

type Limited = { stage: Stage; frame: Frame; body: Promise<unknown> };

async function withinLimits(
  execution: Execution,
  { stage, frame, body }: Limited,
): Promise<unknown> {
  const { clock } = execution.settings;
  const done = new AbortController();
  const limits = [
    ...(stage.timeout_ms === undefined
      ? []
      : [overTime(execution, { stage, frame, signal: done.signal })]),
    ...(stage.no_progress_ms === undefined
      ? []
      : [overSilence(execution, { stage, frame, signal: done.signal })]),
  ].map(quietly);
  try {
    return await Promise.race([body, ...limits]);
  } catch (error) {
    frame.stop(error as Error);
    // A body that stops when asked must not overlap with its next attempt; one that hangs must not
    // block it.
    const ended = body.then(() => execution.late(frame.key, frame.attempt), () => {});
    await Promise.race([ended, quietly(clock.sleep(ABANDON_MS, done.signal))]);
    throw error;
  } finally {
    done.abort();
  }
}

type Limit = { stage: Stage; frame: Frame; signal: AbortSignal };

async function overTime(
  { settings: { clock } }: Execution,
  { stage, frame, signal }: Limit,
): Promise<never> {
  const limit_ms = stage.timeout_ms!;
  await clock.sleep(limit_ms, signal);
  throw new TimeoutError_(`Cannot finish '${frame.key}' in time: its limit is ${limit_ms} ms`, {
    limit_ms,
  });
}

async function overSilence(
  { settings: { clock } }: Execution,
  { stage, frame, signal }: Limit,
): Promise<never> {
  const limit_ms = stage.no_progress_ms!;
  for (;;) {
    const silent_ms = clock.monotonic() - frame.progressed_ms;
    if (silent_ms >= limit_ms) {
      throw new NoProgressError(
        `Cannot continue with '${frame.key}': no progress for ${limit_ms} ms`,
        { limit_ms },
      );
    }
    await clock.sleep(limit_ms - silent_ms, signal);
  }
}

type Finished = { task: Checked; frame: Frame; output: unknown; ms: number };

type Kept = { output: unknown; value: string };

/** One append: the stage's notes, its result with its tally, and the round that it closes. */
async function recordResult(
  execution: Execution,
  { task, frame, output, ms }: Finished,
): Promise<{ kept: Kept; durable: Promise<void> }> {
  const { entry, stage, input_hash, scope } = task;
  const { journal } = execution.settings;
  const text = canonicalJson(output === undefined ? null : output);
  const placed = journal.place(text);
  const recorded = typeof placed === "string" ? placed : await placed;
  const notes = await frame.takeNotes();
  const tally = frame.takeTally();
  const counted = tally ? `"tally":${canonicalJson(tally)},` : "";
  const value = `{${counted}"attempt":${frame.attempt},"ms":${ms},"output":${recorded}}`;
  // Others see what a replay would show them.
  const kept = { output: JSON.parse(text) as unknown, value };
  const ended = execution.reason ?? frame.closed;
  if (ended) {
    execution.late(entry.key, frame.attempt);
    throw ended;
  }
  if (tally) scope.addTally(addTally({}, tally));
  const round = task.staged?.(kept.output);
  const rows: NewRow[] = [...notes, { kind: "result", key: entry.key, input_hash, value }];
  if (round) rows.push(round);
  return { kept, durable: journal.append(rows, stage.phase) };
}

async function recordFailure(
  execution: Execution,
  { task, error }: { task: Checked; error: unknown },
): Promise<Failure> {
  const { entry, stage } = task;
  const { clock, journal, seed, backoff } = execution.settings;
  const json = errorToJson(error);
  const jitter = randomStream(seed, entry.key, "retry", entry.attempts)();
  const now_ms = clock.now();
  const next_ms = nextAttempt(stage, entry.failures, { error: json, now_ms, backoff, jitter });
  const failure: Failure = { attempt: entry.attempts, error: json, next_ms };
  await journal.append([await journal.row("failure", entry.key, failure)], stage.phase);
  entry.failures = [...entry.failures, failure];
  execution.event({ type: "stage_failed", key: entry.key, stage: stage.name, ...failure });
  return failure;
}
