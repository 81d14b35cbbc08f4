/** The durable engine: typed graphs of stages, executed as dataflow over an append-only journal. */
export * from "./artifacts.ts";
export * from "./canonical.ts";
export * from "./clock.ts";
export type * from "./context.ts";
export * from "./engine.ts";
export * from "./errors.ts";
export type * from "./events.ts";
export * from "./faults.ts";
export { graph, type GraphBuilder, type GraphDefinition, type LoopOptions, type RoundBuilder } from "./graph.ts";
export * from "./graph_types.ts";
export type { AppendFaults } from "./journal.ts";
export { type Failure, type Intent, type RoundRecord } from "./journal_tree.ts";
export * from "./ownership.ts";
export * from "./resource.ts";
export type { Backoff } from "./retry.ts";
export { SqliteStore } from "./sqlite_store.ts";
export * from "./stage.ts";
export type * from "./store.ts";
