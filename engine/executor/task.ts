/** What the executor needs to run one stage. */
import type { Entry } from "../journal/tree.ts";
import type { Needs } from "../graph/slots.ts";
import type { Stage } from "../graph/stage.ts";
import type { InRound } from "../journal/recorded_metrics.ts";
import type { NewRow } from "../stores/store.ts";

/** The scope of the graph that a stage is in: it counts tallies, up to the run. */
type TaskScope = {
  readonly in_round: InRound | null;
  addTally(counts: Record<string, number>): void;
};

/** Notified when it must stop. */
export type Stoppable = { stop(reason: Error): void };

/** A body that calls stages: its calls end with it. */
type Caller = {
  /** Why the executor ignores what it does from now on. */
  readonly closed: Error | undefined;
  adopt(child: Stoppable): void;
  release(child: Stoppable): void;
};

export type StageTask = {
  entry: Entry;
  stage: Stage;
  input: unknown;
  scope: TaskScope;
  /** Outside loops: paths of the loops that have ended before it starts. */
  after: readonly string[];
  /** Slots to hold while running; none for the children of a body that runs in the engine. */
  slots?: Needs;
  /** Called when the result is being sent to the store; may add a row to its append. */
  staged?(output: unknown): NewRow | undefined;
  /** The body that called this stage. */
  parent?: Caller;
};
