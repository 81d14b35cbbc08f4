export * from "./algorithm.ts";
export * from "./blocks.ts";
export { configJsonSchema, configSchemaText } from "./json_schema.ts";
export { loadConfig, type LoadedConfig, type LoadOptions, type Origin, parseConfig, readConfig } from "./loader.ts";
export { SamplerConfig, TrainerConfig, WorkersConfig } from "./placeholders.ts";
export { ConfigError, type ConfigProblem, problemLine } from "./problem.ts";
export * from "./schema.ts";
