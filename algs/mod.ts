export * from "./algorithm.ts";
export * from "./choice.ts";
export * from "./credit.ts";
export * from "./language/mod.ts";
export * from "./table.ts";
