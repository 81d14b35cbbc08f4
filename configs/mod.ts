export * from "./blocks.ts";
export { configJsonSchema, configSchemaText } from "./json_schema.ts";
export { loadConfig, type LoadedConfig, type LoadOptions, type Origin, parseConfig, readConfig } from "./loader.ts";
export { SamplerConfig } from "../workers/sampler_config.ts";
export { TrainerConfig } from "../workers/trainer_config.ts";
export { WorkersConfig } from "../workers/workers_config.ts";
export { ConfigError, type ConfigProblem, problemLine } from "./problem.ts";
export * from "./schema.ts";
export { didYouMean } from "./suggest.ts";
