/** Worker processes as the engine sees them: hub, groups, launchers, supervision, environments. */
export * from "./failures.ts";
export { type CallOptions, type CallResult, type GroupSpec, type Progress, WorkerGroup } from "./group.ts";
export { Hub, type HubFile, type HubOptions } from "./hub.ts";
export * from "./local_launcher.ts";
export * from "./operation_phase.ts";
export * from "./operations.ts";
export * from "./protocol.ts";
export * from "./protocol_schema.ts";
export * from "./testing.ts";
export * from "./workers.ts";
