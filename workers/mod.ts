/** Worker processes as the engine sees them: hub, groups, launchers, supervision, environments. */
export { causesPage, causesTable, FAILURES_PAGE_URL } from "./causes_page.ts";
export {
  costOf,
  ensureEnvironment,
  ensureRequirements,
  type EnvironmentKind,
  environmentKind,
  type EnvironmentOptions,
  madeEnvironment,
} from "./environments.ts";
export {
  collectEnvironments,
  type ManagedEnvironment,
  managedEnvironments,
  missingIn,
} from "./managed_environments.ts";
export { bytesBelow } from "./files_on_disk.ts";
export { environmentsDir } from "./environments_dir.ts";
export * from "./failures.ts";
export { Faults } from "./faults.ts";
export { ask, askResident } from "./ask.ts";
export { rebuild } from "./rebuild.ts";
export * from "./call.ts";
export { WorkerGroup } from "./group.ts";
export * from "./gpus.ts";
export * from "./gpus_on_hosts.ts";
export { type GroupSpec, groupSpec } from "./group_spec.ts";
export type { HostOptions } from "./hosts.ts";
export { Hub } from "./hub.ts";
export { type DoorSocket, type HubDoor, type HubFile, type SocketListener } from "./hub_door.ts";
export * from "./local_launcher.ts";
export { Arguments, argumentsOf, outputOf } from "./payload.ts";
export * from "./model_files.ts";
export { FetchedModel, fetchModels, type WantedModel } from "./model_hub.ts";
export { ModelOpening } from "./model_opening.ts";
export * from "./roles/role.ts";
export * from "./roles/table.ts";
export * from "./roles/trainer.ts";
export * from "./roles/sampler.ts";
export * from "./roles/reward.ts";
export type { Caller, Operator } from "./operator.ts";
export { RoleWorkers, workersOf } from "./role_workers.ts";
export { PolicyTrainer, type PolicyTrainerOptions, type PublishTarget } from "./policy_trainer.ts";
export { checkpointName } from "./materialiser.ts";
export { CheckpointNote, recordedRows, VersionChain, VersionNote } from "./version_chain.ts";
export {
  ASIDE,
  type FileProblem,
  firstProblem,
  mayBeDamage,
  problemText,
  SetAside,
} from "./checkpoint_files.ts";
export * from "./replan.ts";
export * from "./protocol.ts";
export * from "./protocol_schema.ts";
export { PYTHON_FRAMES_URL, pythonFramesText } from "./python_frames.ts";
export { PYTHON_TYPES_URLS, pythonTypesTexts } from "./python_types.ts";
export * from "./recovery.ts";
export { endWorkersOf, homeNonce } from "./process_sweep.ts";
export {
  type EnvironmentProgress,
  type MakingOptions,
  type OnEnvironmentProgress,
} from "./making.ts";
export {
  checkPython,
  describePython,
  findPython,
  PYTHON_MINOR_MAX,
  PYTHON_MINOR_MIN,
} from "./python_interpreter.ts";
export type { RowLength } from "./row_lengths.ts";
export { runPython } from "./run_python.ts";
export * from "./sampler_config.ts";
export * from "./trainer_config.ts";
export * from "./value_model_config.ts";
export { workerEnvironment } from "./worker_environment.ts";
export { readWorkerStates, WorkerState } from "./worker_states.ts";
export * from "./workers.ts";
export * from "./workers_config.ts";
export { type AgentLine, type LineListener, type LineSocket, webSocketLine } from "./agent_line.ts";
export { LIMITS } from "./limits.ts";
export {
  endEarlierTrackers,
  startTracker,
  type TrackerAnswer,
  type TrackerProcess,
} from "./tracker_process.ts";
