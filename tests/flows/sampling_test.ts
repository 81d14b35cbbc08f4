import { deepStrictEqual } from "node:assert/strict";
import { greedyOf, samplingOf } from "../../flows/sampling.ts";
import { SamplerConfig } from "../../workers/mod.ts";

const SAMPLER = SamplerConfig.parse({
  temperature: 0.7,
  top_p: 0.9,
  top_k: 40,
  tokens_max: 12,
  stop: ["END"],
  min_p: 0.1,
  repetition_penalty: 1.1,
  stop_token_ids: [7],
  ignore_eos: true,
  replicas: 3,
});

Deno.test("samplingOf() takes only what decides the tokens", () => {
  deepStrictEqual(samplingOf(SAMPLER), {
    temperature: 0.7,
    top_p: 0.9,
    top_k: 40,
    tokens_max: 12,
    stop: ["END"],
    min_p: 0.1,
    repetition_penalty: 1.1,
    stop_token_ids: [7],
    ignore_eos: true,
  });
});

Deno.test("greedyOf() takes the most likely token, within the same bounds", () => {
  deepStrictEqual(greedyOf(SAMPLER), {
    temperature: 0,
    top_p: 1,
    top_k: -1,
    tokens_max: 12,
    stop: ["END"],
    min_p: 0,
    repetition_penalty: 1.1,
    stop_token_ids: [7],
    ignore_eos: true,
  });
});
