/** Graphs without workers, as a user's module would export them: what `serve` imports. */
import { z } from "zod";
import { defineStage, graph } from "../../../engine/mod.ts";

const Config = z.strictObject({ n: z.number() });

const double = defineStage({
  name: "double",
  version: 1,
  input: z.strictObject({ n: z.number() }),
  output: z.number(),
  run: ({ n }) => 2 * n,
});

export const doubled = graph("doubled", Config, (g, { n }) => g.stage(double, { n }));

/** The same name and another graph: another version of the code. */
export const older = graph(
  "doubled",
  Config,
  (g, { n }) => g.stage({ ...double, version: 0 }, { n }),
);
