import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { FLOWS } from "../../configs/mod.ts";
import { buildFlow, FLOW_GRAPHS, flowDefinition } from "../../flows/mod.ts";
import { onlineConfig, smallQuickstart } from "./fixtures.ts";

Deno.test("FLOW_GRAPHS has a graph for every flow that a configuration may name", () => {
  deepStrictEqual(Object.keys(FLOW_GRAPHS).toSorted(), Object.keys(FLOWS).toSorted());
});

Deno.test("flowDefinition() gives the graph of the flow's own name", () => {
  for (const flow of Object.keys(FLOW_GRAPHS) as (keyof typeof FLOW_GRAPHS)[]) {
    strictEqual(flowDefinition(flow).name, flow);
  }
});

Deno.test("buildFlow() builds the graph that the configuration names", () => {
  strictEqual(buildFlow(onlineConfig("/model")).name, "online");
  strictEqual(buildFlow(smallQuickstart({ rounds: 1, every_rounds: 1 })).name, "quickstart");
});
