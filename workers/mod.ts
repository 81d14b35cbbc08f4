/** Worker processes as the engine sees them: hub, groups, launchers, supervision, environments. */
export { causesPage, causesTable, FAILURES_PAGE_URL } from "./failures/causes_page.ts";
export {
  costOf,
  ensureEnvironment,
  ensureRequirements,
  type EnvironmentKind,
  environmentKind,
  type EnvironmentOptions,
  existingEnvironment,
} from "./environments/environments.ts";
export {
  collectEnvironments,
  type ManagedEnvironment,
  managedEnvironments,
  missingIn,
} from "./environments/managed_environments.ts";
export { bytesBelow } from "./environments/files_on_disk.ts";
export { environmentsDir } from "./environments/environments_dir.ts";
export * from "./failures/failures.ts";
export { Faults } from "./failures/faults.ts";
export { ask, askResident } from "./ask.ts";
export { rebuild } from "./rebuild.ts";
export * from "./call.ts";
export { WorkerGroup } from "./fleet/group.ts";
export * from "./fleet/gpus.ts";
export * from "./fleet/gpus_on_hosts.ts";
export { groupLimits, type GroupSpec, groupSpec } from "./fleet/group_spec.ts";
export type { HostOptions } from "./fleet/hosts.ts";
export { Hub } from "./line/hub.ts";
export {
  type DoorSocket,
  type HubDoor,
  type HubFile,
  type SocketListener,
} from "./line/hub_door.ts";
export * from "./processes/local_launcher.ts";
export { Arguments, argumentsOf, outputOf } from "./line/payload.ts";
export * from "./trainer/model_files.ts";
export { FetchedFiles, fetchFromHub, type WantedFiles } from "./model_hub.ts";
export { ModelOpening } from "./trainer/model_opening.ts";
export * from "./roles/role.ts";
export * from "./roles/table.ts";
export * from "./roles/trainer.ts";
export * from "./roles/sampler.ts";
export * from "./roles/reward.ts";
export type { Caller, Operator } from "./operator.ts";
export { RoleWorkers, workersOf } from "./role_workers.ts";
export {
  PolicyTrainer,
  type PolicyTrainerOptions,
  type PublishTarget,
} from "./trainer/policy_trainer.ts";
export { checkpointName } from "./trainer/materialiser.ts";
export {
  CheckpointNote,
  recordedRows,
  VersionChain,
  VersionNote,
} from "./trainer/version_chain.ts";
export { ModelDigests } from "./trainer/model_digests.ts";
export {
  ASIDE,
  CheckpointDropped,
  type FileProblem,
  firstProblem,
  hasWeightsToMove,
  mayBeDamage,
  MODEL_DIRECTORIES,
  moveWeights,
  problemText,
  SetAside,
  weightsPath,
} from "./trainer/checkpoint_files.ts";
export * from "./trainer/replan.ts";
export * from "./line/protocol.ts";
export { PYTHON_FRAMES_URL, pythonFramesText } from "./line/python_frames.ts";
export { PYTHON_LIMITS_URL, pythonLimitsText } from "./line/python_limits.ts";
export { PYTHON_TYPES_URLS, pythonTypesTexts } from "./line/python_types.ts";
export * from "./failures/recovery.ts";
export { endWorkersOf, homeNonce } from "./processes/process_sweep.ts";
export {
  type EnvironmentProgress,
  type MakingOptions,
  type OnEnvironmentProgress,
} from "./environments/creation.ts";
export {
  checkPython,
  describePython,
  findPython,
  PYTHON_MINOR_MAX,
  PYTHON_MINOR_MIN,
} from "./environments/python_interpreter.ts";
export type { RowLength } from "./trainer/row_lengths.ts";
export { runPython } from "./processes/run_python.ts";
export * from "./sampler_config.ts";
export * from "./trainer/trainer_config.ts";
export * from "./trainer/value_model_config.ts";
export { workerEnvironment } from "./processes/worker_environment.ts";
export { Turns } from "./turns.ts";
export { readWorkerStates, WorkerState } from "./fleet/worker_states.ts";
export * from "./workers.ts";
export * from "./workers_config.ts";
export {
  type AgentLine,
  type LineListener,
  type LineSocket,
  webSocketLine,
} from "./line/agent_line.ts";
export { LIMITS } from "./line/limits.ts";
export {
  endEarlierTrackers,
  startTracker,
  type TrackerAnswer,
  type TrackerProcess,
} from "./processes/tracker_process.ts";
