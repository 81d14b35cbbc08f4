export * from "./combine_scores.ts";
export * from "./config.ts";
export * from "./kept_scores.ts";
export * from "./policy_sampler.ts";
export * from "./reward_scorer.ts";
export * from "./slabs.ts";
