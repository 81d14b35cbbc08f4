import type { Config, Flow } from "../configs/mod.ts";
import type { Graph, GraphDefinition } from "../engine/mod.ts";
import { evaluate } from "./evaluate.ts";
import { online } from "./online.ts";
import { preference } from "./preference.ts";
import { quickstart } from "./quickstart.ts";
import { supervised } from "./supervised.ts";

/** The stage graphs that ship, by the `flow:` of a configuration. */
export const FLOW_GRAPHS = { online, supervised, evaluate, quickstart, preference };

/** The graph of a flow, before it is built. */
export function flowDefinition(flow: Flow): GraphDefinition<Config, Config> {
  // Each flow's graph takes its own member of the union; the discriminator has just chosen it.
  return FLOW_GRAPHS[flow] as unknown as GraphDefinition<Config, Config>;
}

/** The graph that a resolved configuration describes. Runs nothing. */
export function buildFlow(config: Config): Graph {
  return flowDefinition(config.flow).build(config);
}

/** How a run names the graph it was made of, when it is one that ships. */
export const SHIPPED = "holdfast:";
