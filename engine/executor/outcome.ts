/** Drives an execution to its end, and records how it ended. */
import type { ArtifactStore } from "../files/artifacts.ts";
import { CancelledError, type ErrorJson, errorToJson, FencedError } from "../errors.ts";
import { type Execution, quietly } from "./executor.ts";
import { ScopeRun } from "./scope.ts";
import type { Graph } from "../graph/types.ts";
import { Journal } from "../journal/journal.ts";
import { recordedValue } from "../journal/recorded_value.ts";
import type { Store } from "../stores/store.ts";

/** How an execution ended. `interrupted` and `failed` runs can be resumed. */
export type Outcome<T = unknown> =
  | { status: "done"; output: T }
  | { status: "failed"; error: ErrorJson }
  | { status: "cancelled" | "interrupted" | "fenced" };

/** How an execution ends; the callbacks are those of `ExecuteOptions`. */
type Ending = {
  store: Store;
  /** How long running bodies may take to end after a cancel. */
  cancel_grace_ms: number;
  letGo?: () => Promise<void>;
  beforeEnd?: () => Promise<void>;
};

/** Where a run's output is recorded: a `note/output` row of this key. */
const OUTPUT = { kind: "note/output", key: "run" } as const;

/** Runs the graph until it is done, fails or is stopped, or until a drained run is quiet. */
export async function outcomeOf<T>(
  execution: Execution,
  { graph, ...ending }: Ending & { graph: Graph<T> },
): Promise<Outcome<T>> {
  await execution.remaking.find(execution, graph);
  const root = new ScopeRun(execution, {
    scope: { nodes: [...graph.nodes], output: graph.output },
    path: "",
  });
  const quiet = execution.quiet();
  const whole = root.start().then(async () => ({ output: await root.resolve(graph.output) }));
  // A failure of the graph drains the run: what is in flight is recorded before it ends.
  const finished = await Promise.race([quiet, whole.catch(() => quiet)]);
  const { run, epoch, journal } = execution.settings;
  await journal.unsettled()?.catch(() => {}); // What broke it is the execution's reason.
  const { reason, failure } = execution;
  if (reason) return await stopped(execution, { ...ending, reason });
  if (finished) return await finish(execution, { ...ending, output: finished.output as T });
  if (failure) return await failed(execution, { ...ending, failure });
  await journal.idle();
  await ending.letGo?.();
  // What happened meanwhile counts: a run that was lost or cancelled while its workers ended is not
  // interrupted.
  if (execution.reason) return await stopped(execution, { ...ending, reason: execution.reason });
  await ending.store.release(run, epoch);
  return { status: "interrupted" };
}

async function finish<T>(
  execution: Execution,
  { store, output, beforeEnd }: Ending & { output: T },
): Promise<Outcome<T>> {
  const { run, epoch, journal } = execution.settings;
  await journal.append([await journal.row(OUTPUT.kind, OUTPUT.key, output)]);
  await beforeEnd?.();
  const ended = await store.finish(run, epoch, "done");
  if (ended.fenced) return { status: "fenced" };
  return ended.status === "done" ? { status: "done", output } : { status: "cancelled" };
}

async function failed(
  execution: Execution,
  { store, failure, beforeEnd }: Ending & { failure: Error },
): Promise<Outcome<never>> {
  const { run, epoch, journal } = execution.settings;
  const error = errorToJson(failure);
  await journal.idle();
  await beforeEnd?.();
  const ended = await store.finish(run, epoch, "failed", JSON.stringify(error));
  if (ended.fenced) return { status: "fenced" };
  return ended.status === "failed" ? { status: "failed", error } : { status: "cancelled" };
}

async function stopped(
  execution: Execution,
  { store, cancel_grace_ms, reason, beforeEnd }: Ending & { reason: Error },
): Promise<Outcome<never>> {
  if (reason instanceof FencedError) return { status: "fenced" };
  if (!(reason instanceof CancelledError)) throw reason;
  const { run, epoch, journal, clock } = execution.settings;
  const waited = new AbortController();
  const grace = quietly(clock.sleep(cancel_grace_ms, waited.signal));
  await Promise.race([execution.settled(), grace]);
  waited.abort();
  journal.close(reason);
  await beforeEnd?.();
  const ended = await store.finish(run, epoch, "cancelled");
  return { status: ended.fenced ? "fenced" : "cancelled" };
}

/** The result of a run that is done. */
export async function recordedOutput(
  run: string,
  { store, artifacts }: { store: Store; artifacts: ArtifactStore },
): Promise<unknown> {
  const [row] = await store.read(run, { kinds: [OUTPUT.kind], newest_first: true, limit: 1 });
  const reader = new Journal({ store, artifacts, run, epoch: 0, last_seq: 0, onBroken() {} });
  return row ? await reader.fetch(recordedValue(row)) : undefined;
}
