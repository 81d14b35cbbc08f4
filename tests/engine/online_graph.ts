/** A graph of every kind of node: an online loop of training. */
import { z } from "zod";
import { defineStage, graph } from "../../engine/mod.ts";

const Policy = z.strictObject({ version: z.number() });

export const start = defineStage({
  name: "start",
  version: 1,
  input: z.strictObject({ seed: z.number() }),
  output: Policy,
  run: () => ({ version: 0 }),
});

export const draw = defineStage({
  name: "draw",
  version: 1,
  input: z.strictObject({ round: z.number() }),
  output: z.array(z.string()),
  run: () => [],
});

export const sample = defineStage({
  name: "sample",
  version: 1,
  runs_on: "sampler",
  input: z.strictObject({ item: z.string(), policy: Policy }),
  output: z.array(z.number()),
  run: () => [],
});

export const score = defineStage({
  name: "score",
  version: 1,
  input: z.strictObject({ item: z.number(), scale: z.number().optional() }),
  output: z.number(),
  run: () => 1,
});

export const train = defineStage({
  name: "train",
  version: 1,
  runs_on: "trainer",
  input: z.strictObject({ scores: z.array(z.number()), policy: Policy }),
  output: Policy,
  run: ({ policy }) => policy,
});

export const Config = z.strictObject({ rounds: z.number(), lag: z.number().default(0) });

export const online = graph("online", Config, (g, config) => {
  const first = g.stage(start, { seed: 1 });
  const rounds = g.loop("round", { times: config.rounds, carry: { policy: first } }, (r) => {
    const prompts = r.stage(draw, { round: r.index });
    const samples = r.flat(
      r.map(sample, prompts, { policy: r.carried("policy", { lag: config.lag }) }),
    );
    const scores = r.map(score, samples);
    return { policy: r.stage(train, { scores, policy: r.carried("policy") }) };
  });
  return rounds.policy;
});
