import { InfrastructureError, InvalidInputError } from "../../engine/mod.ts";
import type { TrainerConfig } from "../trainer/trainer_config.ts";

/** What is read from the machine. Tests pass their own. */
export type Machine = { env: Record<string, string | undefined>; devices: string[] };

/** The GPUs of one worker group. */
export type GpuPlace = {
  /** `CUDA_VISIBLE_DEVICES` of the group. */
  visible: string[];
  /** Processes of this run on the fullest of them, the group's own too. */
  sharing: number;
  /** `CUDA_DEVICE_ORDER` of the group, where the numbers are ours. */
  order: "PCI_BUS_ID" | null;
};

/** What a group asks for. Groups of one block divide the block's GPUs among them. */
export type GpuNeeds = {
  /** Of the configuration, as errors name it. */
  block: string;
  device: Device;
  /** Places in what this process sees; null or absent: what groups before it leave, or else all. */
  devices?: readonly number[] | null;
  /** GPUs of the group. */
  count: number;
  /** The explanation for a machine that has fewer. */
  each: { reason: string; why: string; fix: string };
};

type Device = TrainerConfig["device"];

/** This machine: its environment variables and /dev. */
export function thisMachine(): Machine {
  return { env: Deno.env.toObject(), devices: deviceNames() };
}

function deviceNames(): string[] {
  try {
    return [...Deno.readDirSync("/dev")].map(({ name }) => name);
  } catch {
    return []; // Not Linux, or not to be read.
  }
}

/**
 * The NVIDIA GPUs that this process may use, as `CUDA_VISIBLE_DEVICES` names them: its entries
 * where it is set (a cluster's scheduler sets it), else 0, 1, ... in the order of nvidia-smi. The
 * workers' torch decides in the end: this only picks packages and places.
 */
export function visibleGpus(machine: Machine = thisMachine()): string[] {
  const listed = machine.env.CUDA_VISIBLE_DEVICES;
  if (listed !== undefined) {
    const entries = listed.split(",").map((entry) => entry.trim());
    // CUDA ignores everything after an invalid entry.
    const end = entries.findIndex((entry) => entry === "" || entry === "-1");
    return end < 0 ? entries : entries.slice(0, end);
  }
  const count = machine.devices.filter((name) => /^nvidia\d+$/.test(name)).length;
  // Windows' Linux shows its GPUs as one device; more than one is named by CUDA_VISIBLE_DEVICES.
  const found = count === 0 && machine.devices.includes("dxg") ? 1 : count;
  return Array.from({ length: found }, (_, i) => String(i));
}

/** Whether this process may use a GPU. */
export function hasGpu(machine: Machine = thisMachine()): boolean {
  return visibleGpus(machine).length > 0;
}

/** Whether a block's processes are meant for a GPU. */
export function onGpu(device: Device, machine: Machine = thisMachine()): boolean {
  return device === "cuda" || (device === "auto" && hasGpu(machine));
}

/**
 * Which GPUs each group gets, by its name. A block's `devices` decides. Without it the groups of
 * the first block take what they need, from the first GPU on, and those of each later block share
 * out what is left; where too few are left, they share all. null: no GPU is meant or seen.
 * `excluded`: those that broke in this run.
 * @throws {InvalidInputError} If the machine lacks what a block requires.
 */
export function placeGpus(
  groups: readonly { group: string; gpus: GpuNeeds | null }[],
  machine: Machine = thisMachine(),
  excluded: ReadonlySet<string> = new Set(),
): Record<string, GpuPlace | null> {
  const seen = visibleGpus(machine);
  const whole = (gpus: string[]) => gpus.filter((gpu) => !excluded.has(gpu));
  const blocks = Map.groupBy(groups.filter(({ gpus }) => gpus !== null), ({ gpus }) => gpus!.block);
  const wanted = [...blocks.values()].map((blockGroups) => {
    const needs = blockGroups[0]!.gpus!;
    const named = chosen(needs, seen);
    return {
      needs,
      names: blockGroups.map(({ group }) => group),
      configured: named && whole(named),
    };
  });
  const taken = new Map<string, string[]>();
  wanted.forEach(({ needs, names, configured }, i) => {
    const later = wanted.slice(i + 1).flatMap(({ configured }) => configured ?? []);
    const others = [...[...taken.values()].flat(), ...later];
    const shares = shared(needs, { groups: names.length, all: whole(seen), configured, others });
    names.forEach((name, n) => taken.set(name, shares[n]!));
  });
  const ordered = machine.env.CUDA_VISIBLE_DEVICES !== undefined ||
    machine.env.CUDA_DEVICE_ORDER !== undefined;
  const place = (visible: string[]): GpuPlace | null => {
    if (visible.length === 0) return null;
    const each = [...taken.values()];
    const sharing = Math.max(
      ...visible.map((gpu) => each.filter((group) => group.includes(gpu)).length),
    );
    return { visible, sharing, order: ordered ? null : "PCI_BUS_ID" };
  };
  return Object.fromEntries(groups.map(({ group }) => [group, place(taken.get(group) ?? [])]));
}

/** The GPUs that a block's `devices` names; null if it names none. */
function chosen({ block, device, devices }: GpuNeeds, all: string[]): string[] | null {
  if (!devices) return null;
  if (device === "cpu") {
    throw new InvalidInputError(
      `Cannot place the ${block} because ${block}.devices names GPUs and ${block}.device is ` +
        "cpu: drop one of the two",
    );
  }
  const missing = devices.find((number) => number >= all.length);
  if (missing === undefined) return devices.map((number) => all[number]!);
  throw new InvalidInputError(
    `Cannot place the ${block} because ${block}.devices names GPU ${missing}: this process sees ` +
      `${all.length} (${all.length === 0 ? "none" : `0 to ${all.length - 1}`})`,
    { block, devices, seen: all },
  );
}

type Choice = { groups: number; all: string[]; configured: string[] | null; others: string[] };

/** The GPUs of each group of a block. */
function shared(
  { block, device, count, each: { reason, why, fix } }: GpuNeeds,
  { groups, all, configured, others }: Choice,
): string[][] {
  const each = Array.from({ length: groups }, (_, i) => i);
  if (device === "cpu" || (all.length === 0 && device === "auto")) return each.map(() => []);
  const free = all.filter((gpu) => !others.includes(gpu));
  const pool = configured ?? (free.length >= count ? free : all);
  // Only torch sees a GPU here: the process finds it itself.
  if (pool.length === 0) return each.map(() => []);
  const slots = Math.floor(pool.length / count);
  if (slots > 0) {
    return each.map((i) => pool.slice((i % slots) * count, (i % slots) * count + count));
  }
  throw new InvalidInputError(
    `Cannot place the ${block} because ${reason} and it may use ${pool.length} GPUs: ` +
      `${why}. ${fix}, or set ` +
      `${block}.device to cpu`,
    { block, count, gpus: pool },
  );
}

/** GPUs that broke and are excluded from the run, and those that its other groups use. */
type GpuLosses = { excluded: ReadonlySet<string>; used: readonly string[] };

/**
 * A group's place without its broken GPUs: spares that no other group uses replace them. Excluded
 * GPUs stay excluded for the run.
 * @throws {InfrastructureError} If no spare is left. It names the broken GPU.
 */
export function withoutGpus(
  group: string,
  place: GpuPlace,
  { excluded, used }: GpuLosses,
  machine: Machine = thisMachine(),
): GpuPlace {
  const broken = place.visible.filter((gpu) => excluded.has(gpu));
  const spares = visibleGpus(machine).filter((gpu) =>
    !excluded.has(gpu) && !used.includes(gpu) && !place.visible.includes(gpu)
  );
  if (spares.length >= broken.length) {
    const taken = spares.values();
    return {
      ...place,
      visible: place.visible.map((gpu) => excluded.has(gpu) ? taken.next().value! : gpu),
    };
  }
  throw new InfrastructureError(
    `Cannot continue with ${group} because GPU ${
      broken.join(", ")
    } is broken and no other is free: it needs ${place.visible.length}, ` +
      `${
        place.visible.length - broken.length + spares.length
      } are left. Fix it, or resume with smaller groups (trainer.ranks, sampler.replicas)`,
    { group, broken, excluded: [...excluded], spares },
    { retryable: false },
  );
}

/**
 * The GPUs of a group that a failure concerns: the one that it names, or the rank's own if each
 * rank has one, or all, because one of them is broken and would fail again.
 */
export function brokenGpus(
  { visible }: GpuPlace,
  { device, rank, ranks }: { device: string | null; rank: number | null; ranks: number },
): string[] {
  if (device !== null && visible.includes(device)) return [device];
  return rank !== null && visible.length === ranks ? [visible[rank]!] : [...visible];
}

/** The environment that puts a group on its GPUs, or keeps it off all of them. */
export function gpuEnv(device: Device, place: GpuPlace | null): Record<string, string> {
  if (device === "cpu") return { CUDA_VISIBLE_DEVICES: "" };
  if (place === null) return {};
  return {
    CUDA_VISIBLE_DEVICES: place.visible.join(","),
    ...(place.order === null ? {} : { CUDA_DEVICE_ORDER: place.order }),
    HOLDFAST_GPU_SHARING: String(place.sharing),
  };
}
