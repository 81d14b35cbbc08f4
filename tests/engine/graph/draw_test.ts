import { deepStrictEqual, match } from "node:assert/strict";
import { z } from "zod";
import { loopTimes } from "../../../engine/graph/draw.ts";
import { graph } from "../../../engine/mod.ts";
import { online, start } from "../online_graph.ts";

Deno.test("draw() shows nodes, edges and lags without running anything", () => {
  const text = online.build({ rounds: 6, lag: 1 }).draw();
  deepStrictEqual(text.split("\n").slice(1), [
    "├─ start",
    "└─ round × 6, lag 1  <- policy: start",
    "   ├─ draw  <- round: round(index)",
    "   ├─ sample for each [sampler]  <- item: round/*/draw, policy: round(policy, lag 1)",
    "   ├─ flat  <- round/*/sample",
    "   ├─ score for each  <- item: round/*/flat",
    "   └─ train [trainer]  <- scores: round/*/score, policy: round(policy)",
  ]);
  const mermaid = online.build({ rounds: 6, lag: 1 }).draw("mermaid");
  match(mermaid, /^flowchart TD\n {2}n0\["start"\]\n {2}subgraph n1\["round × 6, lag 1"\]/);
  match(mermaid, /n6 -\. policy lag 1 \.-> n3/);
});

Deno.test("count() says how often each stage will run", () => {
  deepStrictEqual(online.build({ rounds: 6 }).count(), [
    { stage: "start", runs_on: "engine", times: 1, per_item: false },
    { stage: "draw", runs_on: "engine", times: 6, per_item: false },
    { stage: "sample", runs_on: "sampler", times: 6, per_item: true },
    { stage: "score", runs_on: "engine", times: 6, per_item: true },
    { stage: "train", runs_on: "trainer", times: 6, per_item: false },
  ]);
});

Deno.test("loopTimes() has the most rounds of every loop, by its path", () => {
  const nested = graph("nested", z.strictObject({}), (g) => {
    const first = g.stage(start, { seed: 1 });
    const outer = g.loop("outer", { times: 4, carry: { policy: first } }, (o) => {
      const inner = o.loop("inner", { times: 3, carry: { policy: o.carried("policy") } }, (r) => ({
        policy: r.stage(start, { seed: 2 }),
      }));
      return { policy: inner.policy };
    });
    return outer.policy;
  });
  const { nodes, output } = nested.build({});
  deepStrictEqual(loopTimes({ nodes: [...nodes], output }), { outer: 4, "outer/*/inner": 3 });
});
