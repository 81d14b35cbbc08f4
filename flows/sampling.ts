import { Sampling } from "../data/mod.ts";
import type { SamplerConfig } from "../workers/mod.ts";

/** How tokens are drawn, out of the sampler's whole block. */
export function samplingOf(sampler: SamplerConfig): Sampling {
  const { temperature, top_p, top_k, tokens_max, stop } = sampler;
  return Sampling.parse({ temperature, top_p, top_k, tokens_max, stop });
}

/** The same, always taking the most likely token. */
export function greedyOf(sampler: SamplerConfig): Sampling {
  return { ...samplingOf(sampler), temperature: 0, top_p: 1, top_k: -1 };
}
