/** The durable engine: typed graphs of stages, executed as dataflow over an append-only journal. */
export * from "./files/artifacts.ts";
export * from "./canonical.ts";
export * from "./clock.ts";
export type * from "./graph/context.ts";
export { isNothing, readDerivedJson } from "./files/derived_file.ts";
export * from "./files/directory_owner.ts";
export * from "./engine.ts";
export * from "./errors.ts";
export { type Outcome, recordedOutput } from "./executor/outcome.ts";
export type * from "./events.ts";
export * from "./executor/prefix_of.ts";
export * from "./journal/reachable_artifacts.ts";
export { removeRows } from "./remove_rows.ts";
export {
  graph,
  type GraphBuilder,
  type GraphDefinition,
  type LoopOptions,
  type RoundBuilder,
} from "./graph/graph.ts";
export { keysRead } from "./graph/reads.ts";
export * from "./graph/types.ts";
export { rowValue } from "./journal/journal.ts";
export { checkJournal, JOURNAL_VERSION } from "./stores/journal_version.ts";
export { isUnder, type ItemIdValue } from "./graph/keys.ts";
export { type Failure, recordedRound, type RoundRecord } from "./journal/tree.ts";
export * from "./stores/ownership.ts";
export { signalRun } from "./journal/signals.ts";
export * from "./queue/queue.ts";
export * from "./files/private_files.ts";
export { parsePostgresUrl } from "./stores/postgres_address.ts";
export { PostgresStore } from "./stores/postgres_store.ts";
export { isReadable, recordedAs, recordedValue } from "./journal/recorded_value.ts";
export { damagedField, recordedError, recordedField } from "./stores/recorded_head.ts";
export type { RecordedMetrics } from "./journal/recorded_metrics.ts";
export { isNamed, removeTree, REMOVING } from "./files/removal.ts";
export * from "./graph/resource.ts";
export type { Backoff } from "./executor/retry.ts";
export { checkRunId, isRunId, newRunId, RUN_ID, RunId } from "./run_id.ts";
export { hasEnded } from "./stores/run_life.ts";
export * from "./queue/serve_queues.ts";
export { SqliteJournal } from "./stores/sqlite_journal.ts";
export { SqliteStore } from "./stores/sqlite_store.ts";
export * from "./graph/stage.ts";
export { startedLoop } from "./executor/started_loop.ts";
export type * from "./stores/store.ts";
export * from "./explain.ts";
export type { Needs } from "./graph/slots.ts";
export { randomStream } from "./executor/random.ts";
