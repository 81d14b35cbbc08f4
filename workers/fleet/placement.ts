import { InvalidInputError } from "../../engine/mod.ts";

/** A host on which ranks may be placed. */
export type Room = {
  host: string;
  /** Ranks of the group's role that still fit; `Infinity`: any number. */
  free: number;
  /** Whether ranks on other hosts can reach the ones here. */
  shared: boolean;
};

/** What is placed. */
type Wanted = { group: string; role: string; ranks: number; hosts?: readonly string[] };

/**
 * A host for each rank. Ranks of one host are in a row. The first host that has room for all gets
 * all, since ranks that share a host need no network; else they are dealt to as few hosts as
 * possible, the roomiest first. A group that names its hosts gets those.
 * @throws {InvalidInputError} If there is not enough room.
 */
export function placeRanks(wanted: Wanted, rooms: readonly Room[]): string[] {
  const { ranks, hosts } = wanted;
  if (hosts) {
    const named = Array.from(
      { length: ranks },
      (_, rank) => hosts[Math.floor(rank * hosts.length / ranks)]!,
    );
    return checked(wanted, { places: named, rooms });
  }
  const dealt = dealRanks(ranks, rooms);
  if (dealt !== null) return dealt;
  throw new InvalidInputError(noRoom(wanted, rooms), { group: wanted.group, ranks });
}

/** A host for each rank by the room that there is; null if there is not enough. */
export function dealRanks(ranks: number, rooms: readonly Room[]): string[] | null {
  const whole = rooms.find(({ free }) => free >= ranks);
  if (whole) return Array.from({ length: ranks }, () => whole.host);
  const roomiest = rooms.filter(({ shared }) => shared).toSorted((a, b) => b.free - a.free);
  const places: string[] = [];
  for (const { host, free } of roomiest) {
    for (let i = 0; i < free && places.length < ranks; i++) places.push(host);
  }
  return places.length === ranks ? places : null;
}

function checked(
  wanted: Wanted,
  { places, rooms }: { places: string[]; rooms: readonly Room[] },
): string[] {
  const known = new Map(rooms.map((room) => [room.host, room]));
  const { group } = wanted;
  const missing = places.find((host) => !known.has(host));
  if (missing !== undefined) {
    const text = `Cannot place ${group} on host '${missing}' because the run has ` +
      `${list([...known.keys()])}. Fix: name one of these`;
    throw new InvalidInputError(text, { group, host: missing });
  }
  if (new Set(places).size === 1) return places;
  const alone = places.find((host) => !known.get(host)!.shared);
  if (alone === undefined) return places;
  const text = `Cannot place ${group} on several hosts because '${alone}' has no network ` +
    "interface for its ranks. Fix: set its `interface`";
  throw new InvalidInputError(text, { group, host: alone });
}

function noRoom({ group, role, ranks }: Wanted, rooms: readonly Room[]): string {
  const note = (shared: boolean) => shared ? "" : " (no interface)";
  const has = rooms.map(({ host, free, shared }) => `${host}: ${free}${note(shared)}`);
  const what = `the ${ranks} ${ranks === 1 ? "rank" : "ranks"} of ${group}`;
  return `Cannot place ${what} because its hosts have room for fewer of role '${role}' ` +
    `(${list(has)}). Fix: raise \`ranks.${role}\` of a host, or name another host; ` +
    "a group on several hosts needs an `interface` on each";
}

function list(names: string[]): string {
  return names.length === 0 ? "no host" : names.join(", ");
}
