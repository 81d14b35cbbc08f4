import { Sampling } from "../data/mod.ts";
import type { SamplerConfig } from "../workers/mod.ts";

/** How tokens are drawn, from the sampler's whole block. */
export function samplingOf(sampler: SamplerConfig): Sampling {
  const names = Object.keys(Sampling.shape) as (keyof Sampling)[];
  const fields = Object.fromEntries(names.map((name) => [name, sampler[name]]));
  return Sampling.parse(fields);
}

/** The same, always taking the most likely token. */
export function greedyOf(sampler: SamplerConfig): Sampling {
  return samplingOf({ ...sampler, temperature: 0, top_p: 1, top_k: -1, min_p: 0 });
}
