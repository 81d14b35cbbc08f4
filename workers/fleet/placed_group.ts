import type { EngineError } from "../../engine/mod.ts";
import { WorkerGroup } from "./group.ts";
import type { GroupSpec } from "./group_spec.ts";
import type { AdoptedGroup } from "./host_agent.ts";
import type { Hosts } from "./hosts.ts";
import { placeRanks, type Room } from "./placement.ts";
import type { AgentMessage, GroupState } from "../line/protocol.ts";
import { joinInherited, type Part, Span } from "./span.ts";

type PlacedOptions = Omit<ConstructorParameters<typeof WorkerGroup>[1], "onMoved"> & {
  hosts: Hosts;
  /** Ranks of its role that other groups have on a host. */
  used: (host: string) => number;
};

/**
 * A group and the hosts of its ranks. It is attached while all of them have an agent. If one agent
 * is lost, the whole group is lost and starts again once that host has a new agent. Groups on other
 * hosts are not affected.
 */
export class PlacedGroup {
  readonly group: WorkerGroup;
  readonly #options: PlacedOptions;
  /** Of each rank. */
  #places: readonly string[];
  /** What an earlier engine left of it, by host, until it is attached. */
  #inherited: Map<string, AdoptedGroup>;
  #line: Span | null = null;

  /** @throws {InvalidInputError} If no hosts have room for it. */
  constructor(spec: GroupSpec, options: PlacedOptions) {
    this.#options = options;
    this.#inherited = options.hosts.takeInherited(spec.group);
    const rooms = options.hosts.rooms(spec.role, options.used);
    this.#places = inheritedPlaces(this.#inherited, { spec, rooms }) ?? placeRanks(spec, rooms);
    const last = Math.max(
      0,
      ...[...this.#inherited.values()].map((adopted) => adopted.group.generation),
    );
    const onMoved = () => {
      this.#line?.lost("");
      this.attach();
    };
    this.group = new WorkerGroup(spec, { ...options, onMoved, after: last || options.after });
  }

  /** The host of each rank. */
  get hosts(): readonly string[] {
    return this.#places;
  }

  /** Its ranks that a host has, or will have. */
  ranksOn(host: string): number {
    const ended = this.group.state === "failed" || this.group.state === "stopped";
    return ended ? 0 : this.#places.filter((place) => place === host).length;
  }

  /** Starts the group, or adopts what was left of it, if all its hosts have an agent. */
  attach(): void {
    const { hosts, clock, owns } = this.#options;
    const { hosts: named, ranks } = this.group.spec;
    if (named?.length === ranks) this.#places = named; // A broken GPU may have moved it.
    const parts = [...new Set(this.#places)].flatMap((host): Part[] => {
      const link = hosts.link(host);
      const ranks = this.#places.filter((place) => place === host).length;
      return link ? [{ host, link, ranks, interface: hosts.interface(host) }] : [];
    });
    if (parts.length < new Set(this.#places).size) return;
    const adopted = this.#inherited;
    this.#inherited = new Map();
    const here = parts.flatMap(({ host }) => adopted.get(host) ?? []);
    const inherited = here.length === parts.length ? joinInherited(here) : null;
    const line = this.#line = new Span(parts, {
      group: this.group.spec.group,
      clock,
      owns,
      inherited,
      env: (host) => this.group.spec.host_env?.[host] ?? {},
      onMessage: (message) => this.group.receive(message),
      onRanks: (state) => this.group.refresh(state),
      onBroken: (error) => this.#broken(error),
    });
    this.group.attach(line, inherited);
    for (const [host, one] of adopted) {
      if (!line.isOn(host)) hosts.endInherited(host, one);
      else for (const message of one.news) line.receive(host, message);
    }
  }

  /** A host is lost, and the group's ranks there; those on other hosts are ended. */
  lost(host: string, error: EngineError): void {
    this.#line?.lost(host);
    this.#line = null;
    this.group.agentLost(error);
  }

  #broken(error: EngineError): void {
    this.lost("", error);
    this.attach();
  }

  /**
   * This host of it was given up. Moves the group to other hosts if they have room, else ends it
   * with this error.
   */
  move(host: string, error: EngineError): void {
    const { hosts, used } = this.#options;
    try {
      this.group.spec = this.group.spec.elsewhere?.(host) ?? this.group.spec;
      const { spec } = this.group;
      this.#places = placeRanks(spec, hosts.rooms(spec.role, used));
    } catch {
      return this.group.end(error);
    }
    this.attach();
  }

  /** A message of the agent of this host. */
  receive(host: string, message: AgentMessage): void {
    if (this.#line?.isOn(host)) this.#line.receive(host, message);
  }

  /** The state of its ranks on this host, as a heartbeat says. */
  refresh(host: string, state: GroupState): void {
    if (this.#line?.isOn(host)) this.#line.refresh(host, state);
  }
}

/**
 * An intact group of an earlier engine stays where it is if there is still room. Null: it must be
 * placed again.
 */
function inheritedPlaces(
  inherited: ReadonlyMap<string, AdoptedGroup>,
  { spec, rooms }: { spec: GroupSpec; rooms: readonly Room[] },
): string[] | null {
  const places: string[] = [];
  for (const [host, { group }] of inherited) {
    for (const { rank } of group.ranks) places[rank] = host;
  }
  const counts = Map.groupBy(places, (host) => host);
  const isWhole = places.length === spec.ranks && Object.keys(places).length === spec.ranks;
  const fits = [...counts].every(([name, { length }]) => {
    const room = rooms.find(({ host }) => host === name);
    return room !== undefined && room.free >= length && (counts.size === 1 || room.shared);
  });
  return isWhole && fits && !spec.hosts ? places : null;
}
