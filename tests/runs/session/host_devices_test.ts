import { deepStrictEqual, throws } from "node:assert/strict";
import type { RowKind } from "../../../engine/mod.ts";
import { Devices } from "../../../runs/session/devices.ts";
import { HostDevices } from "../../../runs/session/host_devices.ts";
import {
  type FailureFacts,
  type GroupSpec,
  type HostGpus,
  TrainerConfig,
  trainerGroup,
} from "../../../workers/mod.ts";

const NO_GPU = { env: {}, devices: [] };
const host = (name: string, gpus: string[]): HostGpus => ({
  host: name,
  gpus,
  gpu_order: "PCI_BUS_ID",
  shared: true,
});
const HOSTS = [host("one", ["0", "1", "2"]), host("two", ["4", "5"])];
const group = (ranks: number) => ({
  ...trainerGroup(TrainerConfig.parse({ engine: "deepspeed", device: "cuda", ranks }), { seed: 0 }),
  role: "trainer",
});
const spec = (ranks: number): GroupSpec => ({
  group: "trainer",
  role: "trainer",
  ranks,
  python: "python3",
  module: "m",
  spec: {},
});
const broken = (rank: number | null, device: string | null = null): FailureFacts => ({
  rank,
  device,
  observed: "cuda_ecc",
  role: "root",
  kind: "device_fault",
  cause: "infrastructure",
  action: "exclude_device",
  fingerprint: "x",
});
const gpus = ({ hosts, host_env }: GroupSpec) => [
  hosts!.join(" "),
  ...Object.entries(host_env!).map(([name, env]) => `${name}:${env.CUDA_VISIBLE_DEVICES}`),
];

function started(recorded: ConstructorParameters<typeof Devices>[0] = [], ranks = 4) {
  const devices = new Devices(recorded, NO_GPU);
  const hostDevices = new HostDevices(devices);
  const trainer = hostDevices.placed(spec(ranks), { hosts: HOSTS, groups: [group(ranks)] });
  return { devices, hostDevices, trainer };
}

Deno.test("HostDevices: each host's ranks see their GPUs, numbered as that host does", () => {
  const { trainer } = started();
  deepStrictEqual(gpus(trainer), ["one one one two", "one:0,1,2", "two:4"]);
  deepStrictEqual(trainer.host_env!.two, {
    CUDA_VISIBLE_DEVICES: "4",
    CUDA_DEVICE_ORDER: "PCI_BUS_ID",
    HOLDFAST_GPU_SHARING: "1",
  });
});

Deno.test("HostDevices: the broken GPU is the failed rank's, or the one it names", () => {
  deepStrictEqual(gpus(started().trainer.without!(broken(3))), [
    "one one one two",
    "one:0,1,2",
    "two:5",
  ]);
  deepStrictEqual(gpus(started().trainer.without!(broken(0, "1"))), [
    "one one two two",
    "one:0,2",
    "two:4,5",
  ]);
  throws(() => started().trainer.without!(broken(null)), /needs 4 GPUs .* one: 0, two: 1 for it/);
});

Deno.test("HostDevices: a group leaves a host that was given up for free GPUs", () => {
  const { trainer } = started([], 2);
  deepStrictEqual(gpus(trainer), ["one one", "one:0,1"]);
  const moved = trainer.elsewhere!("one");
  deepStrictEqual(gpus(moved), ["two two", "two:4,5"]);
  throws(() => moved.elsewhere!("two"), /needs 2 GPUs and its hosts have no GPU for it/);
});

Deno.test("HostDevices records broken GPUs with their host; later engines avoid them", async () => {
  const { devices, trainer } = started();
  trainer.without!(broken(3));
  const rows: { kind: RowKind; key: string; value: string }[] = [];
  const record = (kind: RowKind, key: string, value: unknown) => {
    rows.push({ kind, key, value: JSON.stringify(value) });
    return Promise.resolve();
  };
  await devices.record({ key: "k", attempt: 1, record });
  const value = JSON.stringify({ group: "trainer", observed: "cuda_ecc", devices: ["two:4"] });
  deepStrictEqual(rows, [{ kind: "note/device_excluded", key: "two:4", value }]);
  deepStrictEqual(gpus(started(rows).trainer), ["one one one two", "one:0,1,2", "two:5"]);
});

Deno.test("HostDevices: a group beside one that waits has that one's GPUs", () => {
  const { hostDevices } = started([], 2);
  const beside = hostDevices.beside(spec(3), { hosts: HOSTS, groups: [group(3)] });
  deepStrictEqual(gpus(beside), ["one one one", "one:0,1,2"]);
});

Deno.test("HostDevices: a group without GPUs is placed like any other", () => {
  const hostDevices = new HostDevices(new Devices([], NO_GPU));
  const placement = { hosts: [host("one", [])], groups: [group(2)] };
  deepStrictEqual(hostDevices.placed(spec(2), placement), spec(2));
});
