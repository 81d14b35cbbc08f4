import { deepStrictEqual, throws } from "node:assert/strict";
import { InfrastructureError, InvalidInputError } from "../../../engine/mod.ts";
import {
  type GroupOnHosts,
  type HostGpus,
  type HostPlace,
  placeAgain,
  placeOnHosts,
} from "../../../workers/fleet/gpus_on_hosts.ts";
import { SamplerConfig, samplerGroup, TrainerConfig, trainerGroup } from "../../../workers/mod.ts";

function host(name: string, gpus: string[], changes: Partial<HostGpus> = {}): HostGpus {
  return { host: name, gpus, gpu_order: "PCI_BUS_ID", shared: true, ...changes };
}

const trainer = (ranks: number, changes: Record<string, unknown> = {}): GroupOnHosts => ({
  ...trainerGroup(TrainerConfig.parse({ engine: "deepspeed", device: "cuda", ranks, ...changes }), {
    seed: 0,
  }),
  role: "trainer",
});
const sampler = (replica: number, changes: Record<string, unknown> = {}): GroupOnHosts => ({
  ...samplerGroup(SamplerConfig.parse({ engine: "vllm", device: "cuda", ...changes }), {
    seed: 0,
    replica,
  }),
  role: "sampler",
});

type Options = { excluded?: string[]; placed?: [string, HostPlace][] };
function places(groups: GroupOnHosts[], hosts: HostGpus[], options: Options = {}) {
  const { excluded = [], placed = [] } = options;
  return placeOnHosts(groups, {
    hosts,
    excluded: new Set(excluded),
    placed: new Map(placed),
  });
}

/** `HOST:GPUS/SHARING` of each host of a group; null: it has no GPUs. */
function shown(place: HostPlace | null | undefined): string | null {
  if (!place) return null;
  return Object.entries(place.gpus).map(([name, { visible, sharing }]) =>
    `${name}:${visible.join("+")}/${sharing}`
  ).join(" ");
}
const all = (found: Record<string, HostPlace | null>) => Object.values(found).map(shown);

Deno.test("placeOnHosts(): a group that fits on one host is there, the next on free GPUs", () => {
  const hosts = [host("one", ["0", "1"]), host("two", ["0", "1"])];
  deepStrictEqual(all(places([trainer(2), sampler(0), sampler(1)], hosts)), [
    "one:0+1/1",
    "two:0/1",
    "two:1/1",
  ]);
});

Deno.test("placeOnHosts(): ranks are dealt to as few hosts as possible, the roomiest first", () => {
  const hosts = [host("one", ["0"]), host("two", ["4", "5"]), host("three", ["0"])];
  const { trainer: placed, "sampler/0": other } = places([trainer(3), sampler(0)], hosts);
  deepStrictEqual([shown(placed), shown(other)], ["two:4+5/1 one:0/1", "three:0/1"]);
  deepStrictEqual(placed!.hosts, ["two", "two", "one"]);
  deepStrictEqual(placed!.gpus.two!.order, "PCI_BUS_ID");
});

Deno.test("placeOnHosts(): a rank's GPUs are on one host", () => {
  const hosts = [host("one", ["0"]), host("two", ["0"]), host("three", ["0", "1"])];
  const two = { vllm: { tensor_parallel_size: 2 } };
  deepStrictEqual(all(places([sampler(0, two)], hosts)), ["three:0+1/1"]);
  throws(
    () => places([sampler(0, two)], hosts.slice(0, 2)),
    (error: Error) => {
      deepStrictEqual(
        error.message,
        "Cannot place sampler/0 because each needs 2 GPUs and its hosts have GPUs or room for " +
          "fewer (one: 1, two: 1): sampler.vllm's tensor and pipeline parallel sizes. Lower " +
          "them, raise `ranks` of a host, or set sampler.device to cpu; a group on several " +
          "hosts needs an `interface` on each",
      );
      return error instanceof InvalidInputError;
    },
  );
});

Deno.test("placeOnHosts(): if no GPU is free, groups share those with the fewest groups", () => {
  const hosts = [host("one", ["0"]), host("two", ["0"])];
  deepStrictEqual(all(places([trainer(2), sampler(0), sampler(1), sampler(2)], hosts)), [
    "one:0/3 two:0/2",
    "one:0/3",
    "two:0/2",
    "one:0/3",
  ]);
});

Deno.test("placeOnHosts(): hosts without an interface hold whole groups only", () => {
  const hosts = [host("one", ["0"], { shared: false }), host("two", ["0"])];
  throws(() => places([trainer(2)], hosts), InvalidInputError);
  deepStrictEqual(all(places([trainer(1)], hosts)), ["one:0/1"]);
});

Deno.test("placeOnHosts(): room for a role limits its ranks, those of other groups too", () => {
  const hosts = [
    host("one", ["0", "1", "2"], { ranks: { trainer: 1, sampler: 1 } }),
    host("two", ["0", "1"], { ranks: { trainer: 1, sampler: 1 } }),
  ];
  deepStrictEqual(all(places([trainer(2), sampler(0), sampler(1)], hosts)), [
    "one:0/1 two:0/1",
    "one:1/1",
    "two:1/1",
  ]);
  throws(() => places([trainer(3)], hosts), InvalidInputError);
});

Deno.test("placeOnHosts(): devices are positions on every host, and kept for their block", () => {
  const hosts = [host("one", ["4", "5"]), host("two", ["0", "1"])];
  const groups = [trainer(2), sampler(0, { devices: [0] }), sampler(1, { devices: [0] })];
  deepStrictEqual(all(places(groups, hosts)), ["one:5/1 two:1/1", "one:4/1", "two:0/1"]);
  throws(
    () => places([trainer(1, { devices: [3] })], hosts),
    /trainer\.devices names GPU 3 and no host has that many \(one: 2, two: 2\)/,
  );
});

Deno.test("placeOnHosts() leaves out broken GPUs and keeps groups that are placed", () => {
  const hosts = [host("one", ["0", "1"]), host("two", ["0", "1"])];
  const excluded = ["one:0"];
  deepStrictEqual(all(places([trainer(2)], hosts, { excluded })), ["two:0+1/1"]);
  const { "sampler/0": first } = places([sampler(0)], hosts);
  deepStrictEqual(
    all(places([trainer(2), sampler(0)], hosts, { placed: [["sampler/0", first!]] })),
    ["two:0+1/1", "one:0/1"],
  );
});

Deno.test("placeOnHosts(): without announced GPUs, or on the CPU, a group has none", () => {
  deepStrictEqual(all(places([trainer(2), sampler(0)], [host("one", [])])), [null, null]);
  deepStrictEqual(all(places([sampler(0, { device: "cpu" })], [host("one", ["0"])])), [null]);
});

Deno.test("placeAgain() keeps whole GPUs, then takes free ones, on any host", () => {
  const hosts = [host("one", ["0", "1", "2"]), host("two", ["0", "1"])];
  const groups = [trainer(2), sampler(0)];
  const placed = new Map(
    Object.entries(places(groups, hosts)).map(([name, place]) => [name, place!]),
  );
  const again = (broken: string[], on = hosts) =>
    shown(placeAgain(trainer(2), { hosts: on, excluded: new Set(broken), placed }));
  deepStrictEqual([...placed.values()].map(shown), ["one:0+1/1", "one:2/1"]);
  deepStrictEqual(again(["one:0"]), "two:0+1/1");
  deepStrictEqual(again(["one:0", "two:1"]), "one:1/1 two:0/1");
  deepStrictEqual(again([], hosts.slice(1)), "two:0+1/1");
  throws(
    () => again(["one:0", "two:0", "two:1"]),
    (error: Error) =>
      error instanceof InfrastructureError && !error.retryable &&
      /Cannot continue with trainer .* needs 2 GPUs and its hosts have one: 1, two: 0 for it/
        .test(error.message),
  );
});
