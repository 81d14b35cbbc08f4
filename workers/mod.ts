/** Worker processes as the engine sees them: hub, groups, launchers, supervision, environments. */
export * from "./environments.ts";
export * from "./failures.ts";
export * from "./fake_model.ts";
export { type CallOptions, type CallResult, type GroupSpec, type Progress, WorkerGroup } from "./group.ts";
export * from "./group_specs.ts";
export { Hub, type HubFile, type HubOptions } from "./hub.ts";
export * from "./local_launcher.ts";
export * from "./operation_phase.ts";
export * from "./operations.ts";
export { type Caller, type Operator, PolicyTrainer, VersionNote } from "./policy_trainer.ts";
export * from "./protocol.ts";
export * from "./protocol_schema.ts";
export { checkPython, findPython, pythonVersion } from "./python_interpreter.ts";
export * from "./sampler_config.ts";
export * from "./testing.ts";
export * from "./trainer_config.ts";
export * from "./workers.ts";
export * from "./workers_config.ts";
