import {
  brokenGpus,
  type FailureFacts,
  gpuEnv,
  gpuOnHost,
  type GroupOnHosts,
  type GroupSpec,
  type HostGpus,
  type HostPlace,
  placeAgain,
  placeOnHosts,
} from "../../workers/mod.ts";
import type { Devices } from "./devices.ts";

/** Which GPUs the groups have on the hosts that the run names. */
export class HostDevices {
  readonly #devices: Devices;
  readonly #placed = new Map<string, HostPlace>();
  #hosts: readonly HostGpus[] = [];

  /** `devices` knows what broke. */
  constructor(devices: Devices) {
    this.#devices = devices;
  }

  /**
   * A group's specification on its GPUs of these hosts, and how it continues without one of them.
   * @throws {InvalidInputError} If the hosts lack what a block requires.
   */
  placed(
    spec: GroupSpec,
    { hosts, groups }: { hosts: readonly HostGpus[]; groups: readonly GroupOnHosts[] },
  ): GroupSpec {
    this.#hosts = hosts;
    const group = groups.find(({ group }) => group === spec.group)!;
    const place = placeOnHosts(groups, this.#occupancy())[group.group]!;
    if (place === null) return spec;
    this.#placed.set(group.group, place);
    return this.#on(place, { spec, group });
  }

  /** A group beside one that waits: it has that one's GPUs, or more. */
  beside(
    spec: GroupSpec,
    { hosts, groups }: { hosts: readonly HostGpus[]; groups: readonly GroupOnHosts[] },
  ): GroupSpec {
    const group = groups.find(({ group }) => group === spec.group)!;
    const { excluded, placed } = this.#occupancy();
    const others = new Map([...placed].filter(([name]) => name !== spec.group));
    const place = placeOnHosts(groups, { hosts, excluded, placed: others })[spec.group]!;
    return place === null ? spec : { ...spec, ...specOf(place, group) };
  }

  #occupancy() {
    return { hosts: this.#hosts, excluded: this.#devices.excluded, placed: this.#placed };
  }

  #on(place: HostPlace, { spec, group }: { spec: GroupSpec; group: GroupOnHosts }): GroupSpec {
    const again = () => {
      const next = placeAgain(group, this.#occupancy());
      this.#placed.set(group.group, next);
      return this.#on(next, { spec, group });
    };
    return {
      ...spec,
      ...specOf(place, group),
      without: (failure) => {
        const { observed } = failure;
        this.#devices.exclude({ group: group.group, observed, devices: broken(place, failure) });
        return again();
      },
      elsewhere: (gone) => {
        this.#hosts = this.#hosts.filter(({ host }) => host !== gone);
        return again();
      },
    };
  }
}

function specOf(
  { hosts, gpus }: HostPlace,
  { gpus: needs }: GroupOnHosts,
): Pick<GroupSpec, "hosts" | "host_env"> {
  const env = Object.entries(gpus).map(([host, part]) => [host, gpuEnv(needs!.device, part)]);
  return { hosts, host_env: Object.fromEntries(env) };
}

/** The GPUs that a failure concerns, as `brokenGpus` decides on the failed rank's host. */
function broken(
  { hosts, gpus }: HostPlace,
  { device, rank }: Pick<FailureFacts, "device" | "rank">,
): string[] {
  const on = (host: string, local: number | null) => {
    const ranks = hosts.filter((one) => one === host).length;
    return brokenGpus(gpus[host]!, { device, rank: local, ranks })
      .map((gpu) => gpuOnHost(host, gpu));
  };
  if (rank === null) return Object.keys(gpus).flatMap((host) => on(host, null));
  const host = hosts[rank]!;
  return on(host, rank - hosts.indexOf(host));
}
