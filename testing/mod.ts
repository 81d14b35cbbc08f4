/**
 * Fakes and simulators for tests of graphs, stages and engines: they control time, failure and what
 * workers answer.
 */
export * from "./fake_agent.ts";
export * from "./fake_launcher.ts";
export * from "./fake_model_hub.ts";
export type { FakeCall, FakeHook } from "./fake_operator.ts";
export * from "./fake_run.ts";
export * from "./fake_sampler.ts";
export * from "./fake_script.ts";
export * from "./fake_trainer.ts";
export { writeFakeModel } from "./fake_weights.ts";
export * from "./fake_workers.ts";
export * from "./memory_store.ts";
export * from "./simulated_network.ts";
export * from "./simulation.ts";
