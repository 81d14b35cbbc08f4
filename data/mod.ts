export * from "./artifact_ref.ts";
export * from "./batch.ts";
export * from "./policy.ts";
export * from "./prompt.ts";
export * from "./trajectory.ts";
