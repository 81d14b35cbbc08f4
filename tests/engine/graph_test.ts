import { deepStrictEqual, match, notStrictEqual, strictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import { defineStage, graph, type Ref } from "../../engine/mod.ts";

const Policy = z.strictObject({ version: z.number() });
const start = defineStage({
  name: "start",
  version: 1,
  input: z.strictObject({ seed: z.number() }),
  output: Policy,
  run: () => ({ version: 0 }),
});
const draw = defineStage({
  name: "draw",
  version: 1,
  input: z.strictObject({ round: z.number() }),
  output: z.array(z.string()),
  run: () => [],
});
const sample = defineStage({
  name: "sample",
  version: 1,
  runs_on: "sampler",
  input: z.strictObject({ item: z.string(), policy: Policy }),
  output: z.array(z.number()),
  run: () => [],
});
const score = defineStage({
  name: "score",
  version: 1,
  input: z.strictObject({ item: z.number(), scale: z.number().optional() }),
  output: z.number(),
  run: () => 1,
});
const train = defineStage({
  name: "train",
  version: 1,
  runs_on: "trainer",
  input: z.strictObject({ scores: z.array(z.number()), policy: Policy }),
  output: Policy,
  run: ({ policy }) => policy,
});

const Config = z.strictObject({ rounds: z.number(), lag: z.number().default(0) });
const online = graph("online", Config, (g, config) => {
  const first = g.stage(start, { seed: 1 });
  const rounds = g.loop("round", { times: config.rounds, carry: { policy: first } }, (r) => {
    const prompts = r.stage(draw, { round: r.index });
    const samples = r.flat(r.map(sample, prompts, { policy: r.carried("policy", { lag: config.lag }) }));
    const scores = r.map(score, samples);
    return { policy: r.stage(train, { scores, policy: r.carried("policy") }) };
  });
  return rounds.policy;
});

Deno.test("graph() wires by type: a wrong type does not compile", () => {
  graph("types", Config, (g) => {
    const policy = g.stage(start, { seed: 1 });
    const prompts = g.stage(draw, { round: policy.field("version") });
    // @ts-expect-error A policy is not a number.
    g.stage(draw, { round: policy });
    // @ts-expect-error A literal of the wrong type.
    g.stage(draw, { round: "1" });
    // @ts-expect-error A field that the stage does not have.
    g.stage(draw, { round: 1, more: 2 });
    // @ts-expect-error A field that is missing.
    g.stage(train, { scores: [1] });
    // @ts-expect-error The mapped stage takes numbers, the list holds strings.
    g.map(score, prompts);
    // @ts-expect-error The mapped stage needs `policy` too.
    g.map(sample, prompts);
    // @ts-expect-error A policy is not a list.
    g.map(sample, policy, { policy });
    // @ts-expect-error A list of strings is not a list of lists.
    g.flat(prompts);
    // @ts-expect-error A policy has no such field.
    policy.field("name");
    const samples: Ref<number[][]> = g.map(sample, prompts, { policy });
    g.map(score, g.flat(samples), { scale: 2 });
    // @ts-expect-error `scale` is a number.
    g.map(score, g.flat(samples), { scale: "2" });
    // @ts-expect-error The body must return what is carried.
    throws(() => g.loop("l", { times: 1, carry: { policy } }, () => ({})));
    // @ts-expect-error What is carried keeps its type.
    g.loop("m", { times: 1, carry: { policy } }, (r) => ({ policy: r.index }));
    // @ts-expect-error Only what is carried can be read.
    throws(() => g.loop("n", { times: 1, carry: { policy } }, (r) => ({ policy: r.carried("polcy") })));
    // @ts-expect-error `until` names a boolean.
    g.loop("o", { times: 1, carry: { policy }, until: "enough" }, (r) => ({ policy, enough: r.index }));
    g.loop(
      "p",
      { times: 1, carry: { policy }, until: "enough" },
      (r) => ({ policy: r.carried("policy"), enough: true }),
    );
    // @ts-expect-error An audit answers at once: a promise would not be awaited.
    g.loop("q", { times: 1, carry: { policy }, audit: () => Promise.resolve(null) }, (r) => ({
      policy: r.carried("policy"),
    }));
    // @ts-expect-error A flag is a boolean.
    g.when(policy, () => policy, () => policy);
    // @ts-expect-error Both branches have one type.
    g.when(g.constant(true as boolean), () => policy, () => prompts);
    return g.when(g.constant(true as boolean), () => policy, () => policy);
  }).build({ rounds: 1 });
});

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

Deno.test("the graph's hash covers names, versions and edges, and no literals", () => {
  const { hash } = online.build({ rounds: 6 });
  strictEqual(online.build({ rounds: 7 }).hash, hash);
  notStrictEqual(online.build({ rounds: 6, lag: 1 }).hash, hash);
  const wired = (version: number, seed: number) =>
    graph("g", z.strictObject({}), (g) => g.stage({ ...start, version }, { seed })).build({}).hash;
  strictEqual(wired(1, 1), wired(1, 2));
  notStrictEqual(wired(1, 1), wired(2, 1));
});

Deno.test("a value of a round cannot be read outside it", () => {
  const leaking = graph("leaking", Config, (g) => {
    const policy = g.stage(start, { seed: 1 });
    let inner = policy;
    g.loop("round", { times: 1, carry: { policy } }, (r) => ({ policy: inner = r.stage(start, { seed: 2 }) }));
    return inner;
  });
  throws(() => leaking.build({ rounds: 1 }), /scope that it is not in/);
});
