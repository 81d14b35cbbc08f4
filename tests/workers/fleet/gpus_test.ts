import { deepStrictEqual, ok, strictEqual, throws } from "node:assert/strict";
import { InvalidInputError } from "../../../engine/mod.ts";
import {
  gpuEnv,
  type GpuPlace,
  hasGpu,
  type Machine,
  onGpu,
  placeGpus,
  plannedGroups,
  SamplerConfig,
  TrainerConfig,
  ValueModelConfig,
  visibleGpus,
  type WorkerBlocks,
  WorkersConfig,
} from "../../../workers/mod.ts";

/** A machine with that many GPUs, and what a scheduler left of them. */
function machine(count: number, env: Machine["env"] = {}): Machine {
  const gpus = Array.from({ length: count }, (_, i) => `nvidia${i}`);
  return { env, devices: ["null", ...gpus, ...(count > 0 ? ["nvidiactl", "nvidia-uvm"] : [])] };
}

type Blocks = Pick<WorkerBlocks, "trainer" | "value_model" | "sampler">;

/** The groups of these blocks, in the order of the table. */
function planned(blocks: Blocks) {
  const rest = {
    seed: 0,
    workers: WorkersConfig.parse({}),
    reward_processes: 1,
    allow_replan: true,
  };
  return [...plannedGroups({ ...rest, ...blocks }).values()];
}

const samplersOf = (found: Record<string, GpuPlace | null>) =>
  Object.keys(found).filter((name) => name.startsWith("sampler/")).map((name) => found[name]!);

function places(
  blocks: { trainer?: Record<string, unknown>; sampler?: Record<string, unknown> },
  on: Machine,
): { trainer: string[] | null; samplers: (string[] | null)[]; sharing: (number | null)[] } {
  const trainer = TrainerConfig.parse({ engine: "deepspeed", ...blocks.trainer });
  const sampler = SamplerConfig.parse({ engine: "vllm", ...blocks.sampler });
  const found = placeGpus(planned({ trainer, sampler }), on);
  const samplers = samplersOf(found);
  return {
    trainer: found.trainer?.visible ?? null,
    samplers: samplers.map((place) => place?.visible ?? null),
    sharing: [found.trainer, ...samplers].map((place) => place?.sharing ?? null),
  };
}

Deno.test("visibleGpus() counts device files, and CUDA_VISIBLE_DEVICES has the last word", () => {
  deepStrictEqual(visibleGpus(machine(2)), ["0", "1"]);
  deepStrictEqual(visibleGpus(machine(0)), []);
  deepStrictEqual(visibleGpus(machine(8, { CUDA_VISIBLE_DEVICES: "4, GPU-8932f937" })), [
    "4",
    "GPU-8932f937",
  ]);
  deepStrictEqual(visibleGpus(machine(8, { CUDA_VISIBLE_DEVICES: "2,-1,3" })), ["2"]);
  deepStrictEqual(visibleGpus({ env: {}, devices: ["dxg"] }), ["0"]);
});

Deno.test("onGpu(): auto picks the CPU's packages if every GPU is hidden", () => {
  strictEqual(onGpu("auto", machine(1)), true);
  strictEqual(onGpu("auto", machine(1, { CUDA_VISIBLE_DEVICES: "" })), false);
  strictEqual(onGpu("cpu", machine(1)), false);
  strictEqual(onGpu("cuda", machine(0)), true);
  strictEqual(hasGpu(machine(1, { CUDA_VISIBLE_DEVICES: "-1" })), false);
});

Deno.test("placeGpus(): trainer and sampler share a single GPU, and both learn it", () => {
  deepStrictEqual(places({}, machine(1)), { trainer: ["0"], samplers: [["0"]], sharing: [2, 2] });
});

Deno.test("placeGpus(): the trainer takes one GPU per rank, samplers the others", () => {
  deepStrictEqual(places({ trainer: { ranks: 2 }, sampler: { replicas: 2 } }, machine(4)), {
    trainer: ["0", "1"],
    samplers: [["2"], ["3"]],
    sharing: [1, 1, 1],
  });
  deepStrictEqual(places({ trainer: { ranks: 3 }, sampler: { replicas: 2 } }, machine(4)), {
    trainer: ["0", "1", "2"],
    samplers: [["3"], ["3"]],
    sharing: [1, 2, 2],
  });
});

Deno.test("placeGpus(): samplers that compute on several GPUs each get that many", () => {
  const sampler = { replicas: 2, vllm: { tensor_parallel_size: 2 } };
  deepStrictEqual(places({ sampler }, machine(5)).samplers, [["1", "2"], ["3", "4"]]);
  throws(() => places({ sampler }, machine(1)), InvalidInputError);
});

Deno.test("placeGpus(): devices are places in CUDA_VISIBLE_DEVICES, each for one block", () => {
  const on = machine(8, { CUDA_VISIBLE_DEVICES: "4,5,6" });
  deepStrictEqual(places({ sampler: { devices: [0] } }, on), {
    trainer: ["5"],
    samplers: [["4"]],
    sharing: [1, 1],
  });
  deepStrictEqual(places({ trainer: { devices: [2], ranks: 1 } }, on).samplers, [["4"]]);
});

Deno.test("placeGpus(): a value model comes after the trainer, before the samplers", () => {
  const trainer = TrainerConfig.parse({ engine: "deepspeed", ranks: 2 });
  const sampler = SamplerConfig.parse({ engine: "vllm" });
  const placed = (count: number, changes: Record<string, unknown> = {}) => {
    const found = placeGpus(
      planned({ trainer, value_model: ValueModelConfig.parse(changes), sampler }),
      machine(count),
    );
    return [found.trainer, found.critic, ...samplersOf(found)].map((place) =>
      place?.visible.join() ?? null
    );
  };
  deepStrictEqual(placed(5), ["0,1", "2,3", "4"]);
  deepStrictEqual(placed(4), ["0,1", "2,3", "0"]);
  deepStrictEqual(placed(3), ["0,1", "0,1", "2"]);
  deepStrictEqual(placed(3, { ranks: 1 }), ["0,1", "2", "0"]);
  deepStrictEqual(placed(4, { devices: [0], ranks: 1 }), ["1,2", "0", "3"]);
  deepStrictEqual(placed(4, { device: "cpu" }), ["0,1", null, "2"]);
  throws(
    () => placed(2, { ranks: 3 }),
    /Cannot place the value_model because value_model\.ranks is 3/,
  );
});

Deno.test("placeGpus() refuses devices that are missing, too few or on the CPU", () => {
  for (
    const trainer of [{ devices: [3] }, { ranks: 4 }, { devices: [1], ranks: 2 }, {
      device: "cpu",
      devices: [0],
    }]
  ) {
    throws(() => places({ trainer }, machine(3)), (error) => error instanceof InvalidInputError);
  }
});

Deno.test("placeGpus() places nothing where no GPU is seen or meant", () => {
  deepStrictEqual(places({ trainer: { ranks: 2 } }, machine(0)), {
    trainer: null,
    samplers: [null],
    sharing: [null, null],
  });
  deepStrictEqual(places({ trainer: { device: "cpu", ranks: 2 } }, machine(1)).samplers, [["0"]]);
});

Deno.test("gpuEnv() numbers GPUs as nvidia-smi or the user does, and hides them on CPU", () => {
  const blocks = planned({ trainer: TrainerConfig.parse({}), sampler: SamplerConfig.parse({}) });
  const placed = (on: Machine) => placeGpus(blocks, on).trainer!;
  deepStrictEqual(gpuEnv("auto", placed(machine(1))), {
    CUDA_VISIBLE_DEVICES: "0",
    CUDA_DEVICE_ORDER: "PCI_BUS_ID",
    HOLDFAST_GPU_SHARING: "2",
  });
  ok(!("CUDA_DEVICE_ORDER" in gpuEnv("auto", placed(machine(1, { CUDA_VISIBLE_DEVICES: "0" })))));
  deepStrictEqual(gpuEnv("cpu", null), { CUDA_VISIBLE_DEVICES: "" });
  deepStrictEqual(gpuEnv("auto", null), {});
});
