/**
 * Fakes and simulators for tests of graphs, stages and engines. They control time, failures and
 * what workers answer.
 *
 * @module
 */

export { ManualClock } from "../engine/mod.ts";
export {
  FakeAgent,
  FakeFailure,
  type FakeIO,
  fakeLauncher,
  FakeModelHub,
  type FakeModelHubOptions,
  type FakeOperation,
  type FakeScript,
  type FakeTask,
  FakeWorkers,
  fakeWorkers,
  type HubRequest,
  MemoryStore,
  type MemoryStoreOptions,
  SimulatedNetwork,
  SimulatedProcess,
  SimulatedStore,
  SimulatedWorld,
} from "../testing/mod.ts";
