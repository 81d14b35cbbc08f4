import { z } from "zod";
import { Draw, Message, type Policy, Row, Sampling, Slab } from "../../data/mod.ts";
import { Publication } from "../trainer/model_files.ts";
import { ModelOpening, OPENING_SPEC } from "../trainer/model_opening.ts";
import { type SamplerConfig, SamplerProcess } from "../sampler_config.ts";
import {
  defineRole,
  environmentOf,
  fieldsOf,
  NotResident,
  type Operations,
  type PlannedGroup,
  threadsEnv,
} from "./role.ts";

/** A policy whose weights were written out for samplers. */
export type Published = { policy: Policy; publication: Publication };

/** What a sampler is started with. */
const SamplerSpec = z.strictObject({
  ...SamplerProcess.shape,
  ...OPENING_SPEC,
  seed: z.int(),
});
type SamplerSpec = z.infer<typeof SamplerSpec>;

/** Log-probabilities of fixed tokens: the proof that a publication reached the kernels. */
const Probe = z.strictObject({
  logp: z.array(z.number()),
  sha256: z.string().describe("Of the float32 bytes."),
});

const operations = {
  /**
   * Opens the architecture of `model_path` on a noise copy of the weights if that was not done
   * yet, then replaces the weights in place by the publication. Fails if a hash differs from the
   * manifest, or the probe says that old weights are still used.
   */
  load: {
    args: z.strictObject({ version: z.string(), model_path: z.string(), publication: Publication }),
    output: z.strictObject({
      version: z.string(),
      probe: Probe,
      previous_probe: Probe.nullable(),
      tensors_loaded: z.int(),
      seconds: z.number(),
    }),
    phase: "publication",
    timed: "publish",
  },
  generate: {
    args: z.strictObject({
      version: z.string(),
      slab: Slab,
      samples_per_prompt: z.int().positive(),
      sampling: Sampling,
      seed: z.int().describe("The run's seed. Randomness is keyed by (seed, draw, sample, token)."),
    }),
    output: z.union([
      NotResident,
      z.strictObject({
        version: z.string(),
        groups: z.int(),
        samples: z.int(),
        tokens: z.int(),
        prompt_tokens: z.int(),
        seconds: z.number(),
      }),
    ]),
    phase: "generation",
    timed: "generate",
  },
  /** The probe of the resident weights, for tests. */
  probe: { args: z.strictObject({}), output: Probe },
} satisfies Operations;

/** One sampler's group. */
export function samplerGroup(
  config: SamplerConfig,
  { seed, replica, model }: { seed: number; replica: number; model?: ModelOpening },
): PlannedGroup<SamplerSpec> {
  const { engine, threads, device, devices, python } = config;
  const count = gpusOf(config);
  const each = {
    reason: `each needs ${count} GPUs`,
    why: "sampler.vllm's tensor and pipeline parallel sizes",
    fix: "Lower them",
  };
  return {
    group: `sampler/${replica}`,
    ranks: 1,
    python,
    environment: environmentOf({ engine, device }),
    spec: { ...fieldsOf(SamplerProcess, config), ...ModelOpening.parse(model ?? {}), seed },
    env: threadsEnv(threads),
    gpus: { block: "sampler", device, devices, count, each },
  };
}

/** GPUs of one sampler. */
function gpusOf({ engine, vllm }: SamplerConfig): number {
  if (engine !== "vllm") return 1;
  const factor = (name: string) => typeof vllm[name] === "number" ? vllm[name] : 1;
  return factor("tensor_parallel_size") * factor("pipeline_parallel_size");
}

/** The role of workers that generate. */
export const samplerRole = defineRole({
  name: "sampler",
  module: "holdfast_worker.sampler.worker",
  spec: SamplerSpec,
  operations,
  parts: { Message, Row, Draw, Slab, Sampling, Publication, Probe },
  // `PolicySampler` knows the publication of a version, and has it rewritten if it is gone.
  rebuilt: {
    from_record: (ask, { policy, publication }: Published) =>
      ask("load", { version: policy.version, model_path: policy.model_path, publication }),
  },
  groups: ({ sampler, seed, model }) =>
    Array.from(
      { length: sampler.replicas },
      (_, replica) => samplerGroup(sampler, { seed, replica, model }),
    ),
});
