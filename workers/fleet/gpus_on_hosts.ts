import { InfrastructureError, InvalidInputError } from "../../engine/mod.ts";
import { type GpuNeeds, type GpuPlace } from "./gpus.ts";
import { dealRanks, type Room } from "./placement.ts";

/** A host that a run names, and the GPUs that its agent announced. */
export type HostGpus = {
  host: string;
  /** As `CUDA_VISIBLE_DEVICES` names them there. */
  gpus: readonly string[];
  /** `CUDA_DEVICE_ORDER` of these names; null: the host's environment decides. */
  gpu_order: "PCI_BUS_ID" | null;
  /** Ranks of each role that it has room for; absent: any number. */
  ranks?: Readonly<Record<string, number>>;
  /** Whether ranks on other hosts can reach the ones here. */
  shared: boolean;
};

/** Where a group is: the host of each rank, and its GPUs on each of these hosts. */
export type HostPlace = { role: string; hosts: string[]; gpus: Record<string, GpuPlace> };

/** A group to be placed. */
export type GroupOnHosts = {
  group: string;
  role: string;
  ranks: number;
  gpus: GpuNeeds | null;
};

type Places = ReadonlyMap<string, HostPlace>;
type Occupancy = {
  hosts: readonly HostGpus[];
  /** GPUs that broke in this run, as `gpuOnHost` names them. */
  excluded: ReadonlySet<string>;
  /** Groups that have their places already. */
  placed: Places;
};
/** GPUs of a host that a group may take, in the order in which it takes them. */
type Choice = { host: string; gpus: string[] };

/** A GPU's name among those of all hosts. */
export function gpuOnHost(host: string, gpu: string): string {
  return `${host}:${gpu}`;
}

/**
 * The GPUs of each group on named hosts. Groups are placed in order: each takes GPUs that no other
 * group has, on one host if they fit there, else on as few hosts as possible. If too few are left,
 * it shares those with the fewest groups. All GPUs of one rank are on one host. A block's `devices`
 * are positions on every host. null: the group has no GPUs.
 * @throws {InvalidInputError} If the hosts lack what a block requires.
 */
export function placeOnHosts(
  groups: readonly GroupOnHosts[],
  { hosts, excluded, placed }: Occupancy,
): Record<string, HostPlace | null> {
  const places = new Map(placed);
  const announced = hosts.some(({ gpus }) => gpus.length > 0);
  const wanting = groups.filter(({ gpus }) => announced && gpus !== null && gpus.device !== "cpu");
  const reserved = wanting.flatMap(({ gpus }) =>
    gpus!.devices ? [{ block: gpus!.block, names: new Set(names(allowed(gpus!, hosts))) }] : []
  );
  for (const group of wanting.filter(({ group }) => !placed.has(group))) {
    const whole = only(allowed(group.gpus!, hosts), (name) => !excluded.has(name));
    const uses = usesOf(places);
    const isFree = (name: string) =>
      !uses.has(name) &&
      !reserved.some((one) => one.block !== group.gpus!.block && one.names.has(name));
    const free = only(whole, isFree);
    const shared = leastUsed(whole, uses);
    const picked = pick(group, free, { hosts, places }) ?? pick(group, shared, { hosts, places });
    if (picked === null) throw tooFew(group, whole);
    places.set(group.group, picked);
  }
  const uses = usesOf(places);
  return Object.fromEntries(groups.map(({ group }) => {
    const place = places.get(group);
    return [group, place ? counted(place, uses) : null];
  }));
}

/**
 * A different place for a group of which a GPU broke or a host was given up: it keeps its other
 * GPUs if it can, and takes GPUs that no group has.
 * @throws {InfrastructureError} If too few are left.
 */
export function placeAgain(
  group: GroupOnHosts,
  { hosts, excluded, placed }: Occupancy,
): HostPlace {
  const current = placed.get(group.group);
  const others = new Map([...placed].filter(([name]) => name !== group.group));
  const uses = usesOf(others);
  const isHeld = (host: string) => (gpu: string) =>
    current?.gpus[host]?.visible.includes(gpu) ?? false;
  const available = allowed(group.gpus!, hosts).map(({ host, gpus }): Choice => {
    const whole = gpus.filter((gpu) => !excluded.has(gpuOnHost(host, gpu)));
    const kept = whole.filter(isHeld(host));
    const spare = whole.filter((gpu) => !isHeld(host)(gpu) && !uses.has(gpuOnHost(host, gpu)));
    return { host, gpus: [...kept, ...spare] };
  });
  const picked = pick(group, available, { hosts, places: others });
  if (picked) return counted(picked, usesOf(new Map([...others, [group.group, picked]])));
  throw new InfrastructureError(
    `Cannot continue with ${group.group} because it needs ${group.gpus!.count} GPUs and its ` +
      `hosts have ${
        described(available)
      } for it. Fix: repair them, or resume with smaller groups ` +
      "(trainer.ranks, sampler.replicas)",
    { group: group.group, excluded: [...excluded], left: available },
    { retryable: false },
  );
}

/** The GPUs of each host that a block's `devices` allows. */
function allowed({ block, devices }: GpuNeeds, hosts: readonly HostGpus[]): Choice[] {
  const choices = hosts.map(({ host, gpus }) => ({
    host,
    gpus: devices ? devices.flatMap((number) => gpus[number] ?? []) : [...gpus],
  }));
  const missing = devices?.find((number) => hosts.every(({ gpus }) => number >= gpus.length));
  if (missing === undefined) return choices;
  const seen = hosts.map(({ host, gpus }) => `${host}: ${gpus.length}`).join(", ");
  throw new InvalidInputError(
    `Cannot place the ${block} because ${block}.devices names GPU ${missing} and no host has ` +
      `that many (${seen}). Fix: name GPUs from 0 on, as each host counts its own`,
    { block, devices: [...devices!] },
  );
}

/** The place of a group on these GPUs; null if they are too few. */
function pick(
  { role, ranks, gpus }: GroupOnHosts,
  choices: readonly Choice[],
  { hosts, places }: { hosts: readonly HostGpus[]; places: Places },
): HostPlace | null {
  const each = gpus!.count / ranks; // Of one rank.
  const named = new Map(hosts.map((one) => [one.host, one]));
  const ofRole = [...places.values()].filter((place) => place.role === role);
  const ranksOn = (host: string) =>
    ofRole.flatMap((place) => place.hosts).filter((one) => one === host).length;
  const rooms = choices.map(({ host, gpus }): Room => {
    const { ranks, shared } = named.get(host)!;
    const free = ranks ? Math.max(0, (ranks[role] ?? 0) - ranksOn(host)) : Infinity;
    return { host, shared, free: Math.min(free, Math.floor(gpus.length / each)) };
  });
  const dealt = dealRanks(ranks, rooms);
  if (dealt === null) return null;
  const parts = [...Map.groupBy(dealt, (host) => host)].map(([host, shares]) => {
    const visible = choices.find((choice) => choice.host === host)!.gpus
      .slice(0, shares.length * each);
    return [host, { visible, sharing: 1, order: named.get(host)!.gpu_order }] as const;
  });
  return { role, hosts: dealt, gpus: Object.fromEntries(parts) };
}

/** How many groups have each GPU. */
function usesOf(places: Places): Map<string, number> {
  const uses = new Map<string, number>();
  for (const [host, { visible }] of [...places.values()].flatMap((p) => Object.entries(p.gpus))) {
    for (const name of names([{ host, gpus: visible }])) uses.set(name, (uses.get(name) ?? 0) + 1);
  }
  return uses;
}

function names(choices: readonly Choice[]): string[] {
  return choices.flatMap(({ host, gpus }) => gpus.map((gpu) => gpuOnHost(host, gpu)));
}

function only(choices: readonly Choice[], isWanted: (name: string) => boolean): Choice[] {
  return choices.map(({ host, gpus }) => ({
    host,
    gpus: gpus.filter((gpu) => isWanted(gpuOnHost(host, gpu))),
  }));
}

/** The GPUs, and the hosts, with the fewest groups first. */
function leastUsed(choices: readonly Choice[], uses: ReadonlyMap<string, number>): Choice[] {
  const used = (host: string, gpu: string) => uses.get(gpuOnHost(host, gpu)) ?? 0;
  const sorted = choices.map(({ host, gpus }) => ({
    host,
    gpus: gpus.toSorted((a, b) => used(host, a) - used(host, b)),
  }));
  const least = ({ host, gpus: [first] }: Choice) => first === undefined ? 0 : used(host, first);
  return sorted.toSorted((a, b) => least(a) - least(b));
}

/** The place, with the number of groups on the fullest of its GPUs. */
function counted(place: HostPlace, uses: ReadonlyMap<string, number>): HostPlace {
  const gpus = Object.entries(place.gpus).map(([host, part]) => {
    const each = part.visible.map((gpu) => uses.get(gpuOnHost(host, gpu)) ?? 1);
    return [host, { ...part, sharing: Math.max(...each) }];
  });
  return { ...place, gpus: Object.fromEntries(gpus) };
}

function described(choices: readonly Choice[]): string {
  return choices.map(({ host, gpus }) => `${host}: ${gpus.length}`).join(", ") || "no GPU";
}

function tooFew({ group, gpus }: GroupOnHosts, choices: readonly Choice[]): InvalidInputError {
  const { block, count, each: { reason, why, fix } } = gpus!;
  return new InvalidInputError(
    `Cannot place ${group} because ${reason} and its hosts have GPUs or room for fewer ` +
      `(${described(choices)}): ${why}. ${fix}, raise \`ranks\` of a host, or set ` +
      `${block}.device to cpu; a group on several hosts needs an \`interface\` on each`,
    { block, count },
  );
}
