import type { Config, Flow } from "../configs/mod.ts";
import type { Graph, GraphDefinition } from "../engine/mod.ts";
import { evaluate } from "./evaluate.ts";
import { online } from "./online.ts";
import { preference } from "./preference.ts";
import { prepare } from "./prepare.ts";
import { quickstart } from "./quickstart.ts";
import { supervised } from "./supervised.ts";

/** The shipped stage graphs, by the `flow:` of a configuration. */
export const FLOW_GRAPHS = { online, supervised, evaluate, quickstart, preference, prepare };

/** The graph definition of a flow. */
export function flowDefinition(flow: Flow): GraphDefinition<Config, Config> {
  // Each flow's graph takes its own member of the union, which the discriminator has just selected.
  return FLOW_GRAPHS[flow] as unknown as GraphDefinition<Config, Config>;
}

/** The graph that a resolved configuration describes. Runs nothing. */
export function buildFlow(config: Config): Graph {
  return flowDefinition(config.flow).build(config);
}

/** How a run names its graph if that is a shipped one. */
export const SHIPPED = "holdfast:";
