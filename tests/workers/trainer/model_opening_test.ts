import { deepStrictEqual } from "node:assert/strict";
import {
  ModelOpening,
  SamplerConfig,
  samplerGroup,
  TrainerConfig,
  trainerGroup,
} from "../../../workers/mod.ts";

Deno.test("ModelOpening trusts no code, invents and drops no tensor, and leaves kernels to transformers", () => {
  deepStrictEqual(ModelOpening.parse({}), {
    attn_implementation: null,
    trust_remote_code: false,
    open_with_missing: false,
    open_with_unexpected: false,
  });
});

Deno.test("trainers, value models and samplers are started with how their model is opened", () => {
  const model = {
    attn_implementation: "eager" as const,
    trust_remote_code: true,
    open_with_missing: true,
    open_with_unexpected: true,
  };
  const opened = (spec: object) => ModelOpening.strip().parse(spec);
  const trainer = TrainerConfig.parse({});
  deepStrictEqual(opened(trainerGroup(trainer, { seed: 0, model }).spec), model);
  deepStrictEqual(opened(trainerGroup(trainer, { seed: 0, head: "value", model }).spec), model);
  const sampler = SamplerConfig.parse({});
  deepStrictEqual(opened(samplerGroup(sampler, { seed: 0, replica: 0, model }).spec), model);
});
