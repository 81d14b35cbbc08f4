export * from "./algorithm.ts";
export * from "./blocks.ts";
export * from "./schema.ts";
