import { type JournalRow, recordedValue } from "../../engine/mod.ts";
import {
  brokenGpus,
  type Caller,
  type CallOptions,
  DeviceExcluded,
  type FailureFacts,
  type GpuPlace,
  type GroupSpec,
  type Machine,
  placeGpus,
  thisMachine,
  withoutGpus,
} from "../../workers/mod.ts";

/** Which GPUs the groups have, and which the run does without since they broke. */
export class Devices {
  readonly #excluded = new Set<string>();
  readonly #used = new Map<string, GpuPlace>();
  readonly #unrecorded: DeviceExcluded[] = [];

  readonly #machine: Machine;

  constructor(
    recorded: readonly Pick<JournalRow, "kind" | "key" | "value">[],
    machine = thisMachine(),
  ) {
    this.#machine = machine;
    for (const { kind, key, value } of recorded) {
      if (kind !== "note/device_excluded") continue;
      for (const device of DeviceExcluded.parse(recordedValue({ kind, key, value })).devices) {
        this.#excluded.add(device);
      }
    }
  }

  places(groups: Parameters<typeof placeGpus>[0]): Record<string, GpuPlace | null> {
    return placeGpus(groups, this.#machine, this.#excluded);
  }

  /** The broken ones. `HOST:GPU`: of a named host. */
  get excluded(): ReadonlySet<string> {
    return this.#excluded;
  }

  /** A group's specification on these GPUs, and how it continues without one of them. */
  placed(place: GpuPlace | null, spec: (place: GpuPlace | null) => GroupSpec): GroupSpec {
    const planned = spec(place);
    if (place === null) return planned;
    this.#used.set(planned.group, place);
    return {
      ...planned,
      without: (failure) => this.placed(this.#leaveOut(planned, place, failure), spec),
    };
  }

  #leaveOut(
    { group, ranks }: GroupSpec,
    place: GpuPlace,
    { device, rank, observed }: FailureFacts,
  ): GpuPlace {
    this.exclude({ group, observed, devices: brokenGpus(place, { device, rank, ranks }) });
    const others = [...this.#used].filter(([name]) => name !== group);
    const used = others.flatMap(([, { visible }]) => visible);
    return withoutGpus(group, place, { excluded: this.#excluded, used }, this.#machine);
  }

  /** From here on nothing is placed on these. */
  exclude(broken: DeviceExcluded): void {
    for (const gpu of broken.devices) this.#excluded.add(gpu);
    this.#unrecorded.push(broken);
  }

  /** Records them with the next work. A run that ends before that finds them broken again. */
  async record(caller: CallOptions & Partial<Pick<Caller, "record">>): Promise<void> {
    if (!caller.record) return;
    for (const row of this.#unrecorded.splice(0)) {
      await caller.record("note/device_excluded", row.devices.join(","), row);
    }
  }
}
