/** The durable engine: typed graphs of stages, executed as dataflow over an append-only journal. */
export * from "./artifacts.ts";
export * from "./canonical.ts";
export * from "./clock.ts";
export type * from "./context.ts";
export { isNothing, readDerivedJson } from "./derived_file.ts";
export * from "./directory_owner.ts";
export * from "./engine.ts";
export * from "./errors.ts";
export type { Outcome } from "./executor_outcome.ts";
export type * from "./events.ts";
export * from "./prefix_of.ts";
export * from "./reachable_artifacts.ts";
export { removeRows } from "./remove_rows.ts";
export {
  graph,
  type GraphBuilder,
  type GraphDefinition,
  type LoopOptions,
  type RoundBuilder,
} from "./graph.ts";
export { keysRead } from "./graph_reads.ts";
export * from "./graph_types.ts";
export { rowValue } from "./journal.ts";
export { checkJournal, JOURNAL_VERSION } from "./journal_version.ts";
export { isUnder, type ItemIdValue } from "./keys.ts";
export { type Failure, recordedRound, type RoundRecord } from "./journal_tree.ts";
export * from "./ownership.ts";
export { signalRun } from "./signals.ts";
export * from "./queue.ts";
export * from "./private_files.ts";
export { parsePostgresUrl } from "./postgres_address.ts";
export { PostgresStore } from "./postgres_store.ts";
export { isReadable, recordedAs, recordedValue } from "./recorded_value.ts";
export type { RecordedMetrics } from "./recorded_metrics.ts";
export { isNamed, removeTree, REMOVING } from "./removal.ts";
export * from "./resource.ts";
export type { Backoff } from "./retry.ts";
export { checkRunId, hasRunId, isRunId, newRunId, RUN_ID, RunId, shown } from "./run_id.ts";
export { hasEnded } from "./run_life.ts";
export * from "./serve_queues.ts";
export { SqliteJournal } from "./sqlite_journal.ts";
export { SqliteStore } from "./sqlite_store.ts";
export * from "./stage.ts";
export { startedLoop } from "./started_loop.ts";
export type * from "./store.ts";
export * from "./explain.ts";
export type { Needs } from "./slots.ts";
export { randomStream } from "./random.ts";
