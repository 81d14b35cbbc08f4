import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import type { RowKind } from "../../../engine/mod.ts";
import { Devices } from "../../../runs/session/devices.ts";
import {
  type FailureFacts,
  type GpuPlace,
  type GroupSpec,
  SamplerConfig,
  samplerGroup,
  TrainerConfig,
  trainerGroup,
} from "../../../workers/mod.ts";

const MACHINE = { env: {}, devices: ["nvidia0", "nvidia1", "nvidia2", "nvidia3"] };
const GROUPS = [
  trainerGroup(TrainerConfig.parse({ engine: "deepspeed", ranks: 2 }), { seed: 0 }),
  samplerGroup(SamplerConfig.parse({ engine: "vllm" }), { seed: 0, replica: 0 }),
];
const spec = (group: string, ranks: number) => (gpus: GpuPlace | null): GroupSpec => ({
  group,
  role: group,
  ranks,
  python: "python3",
  module: "m",
  spec: {},
  env: { CUDA_VISIBLE_DEVICES: gpus?.visible.join(",") ?? "" },
});
const broken = (rank: number, device: string | null = null): FailureFacts => ({
  rank,
  device,
  observed: "cuda_ecc",
  role: "root",
  kind: "device_fault",
  cause: "infrastructure",
  action: "exclude_device",
  fingerprint: "x",
});
const gpus = ({ env }: GroupSpec) => env!.CUDA_VISIBLE_DEVICES;

function started(recorded: ConstructorParameters<typeof Devices>[0] = []) {
  const devices = new Devices(recorded, MACHINE);
  const { trainer, "sampler/0": sampler } = devices.places(GROUPS);
  return {
    devices,
    trainer: devices.placed(trainer!, spec("trainer", 2)),
    sampler: devices.placed(sampler!, spec("sampler/0", 1)),
  };
}

Deno.test("Devices replaces a broken GPU until no spare one is left", () => {
  const { trainer, sampler } = started();
  deepStrictEqual([gpus(trainer), gpus(sampler)], ["0,1", "2"]);
  const second = trainer.without!(broken(1));
  strictEqual(gpus(second), "0,3");
  throws(
    () => second.without!(broken(0)),
    /Cannot continue with trainer because GPU 0 is broken and no other is free: it needs 2, 1 are left\. .*trainer\.ranks/,
  );
});

Deno.test("Devices: the GPU that the kernel names goes before the rank's own", () => {
  strictEqual(gpus(started().trainer.without!(broken(1, "0"))), "3,1");
});

Deno.test("Devices records what is excluded, and a later engine avoids it", async () => {
  const { devices, trainer } = started();
  trainer.without!(broken(1));
  const rows: { kind: RowKind; key: string; value: string }[] = [];
  const record = (kind: RowKind, key: string, value: unknown) => {
    rows.push({ kind, key, value: JSON.stringify(value) });
    return Promise.resolve();
  };
  await devices.record({ key: "k", attempt: 1 });
  await devices.record({ key: "k", attempt: 1, record });
  await devices.record({ key: "k", attempt: 1, record });
  const value = JSON.stringify({ group: "trainer", observed: "cuda_ecc", devices: ["1"] });
  deepStrictEqual(rows, [{ kind: "note/device_excluded", key: "1", value }]);
  const later = started(rows);
  deepStrictEqual([gpus(later.trainer), gpus(later.sampler)], ["0,2", "3"]);
});

Deno.test("Devices: without GPUs there is nothing to leave out", () => {
  const devices = new Devices([], { env: {}, devices: [] });
  strictEqual(devices.placed(null, spec("trainer", 2)).without, undefined);
});
