/** The durable engine: typed graphs of stages, executed as dataflow over an append-only journal. */
export * from "./artifacts.ts";
export * from "./canonical.ts";
export * from "./clock.ts";
export type * from "./context.ts";
export * from "./errors.ts";
export type * from "./events.ts";
export { graph, type GraphBuilder, type GraphDefinition, type LoopOptions, type RoundBuilder } from "./graph.ts";
export * from "./graph_types.ts";
export type { RoundRecord } from "./journal_tree.ts";
export * from "./resource.ts";
export * from "./stage.ts";
export type * from "./store.ts";
