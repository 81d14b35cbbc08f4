import { type EngineError, InvalidInputError } from "../../engine/mod.ts";
import type { AgentLink } from "../line/agent_link.ts";
import type { HostGpus } from "./gpus_on_hosts.ts";
import { DISMISS_GRACE_MS } from "./group.ts";
import { type AdoptedGroup, HostAgent, LOCAL } from "./host_agent.ts";
import type { Hub } from "../line/hub.ts";
import type { Launcher, LocalLauncherOptions } from "../processes/local_launcher.ts";
import type { Room } from "./placement.ts";
import type { AgentMessage } from "../line/protocol.ts";
import type { Tenure } from "./tenure.ts";

/**
 * A machine, or a part of one, that a run may use. All hosts of a run see its home under one path.
 */
export type HostOptions = {
  /**
   * Starts its agents. `here`: the options for one on this machine. Default: processes on this
   * machine.
   */
  launcher?: Launcher | ((here: LocalLauncherOptions) => Launcher);
  /**
   * Network interface of its ranks' sockets. Without one, its ranks cannot work with other hosts'
   * ranks.
   */
  interface?: string | null;
  /**
   * Ranks of each role (`trainer`, `sampler`, `reward`) that it has room for; none of a role that
   * is not named. Default: any.
   */
  ranks?: Readonly<Record<string, number>>;
};

type AgentOptions = ConstructorParameters<typeof HostAgent>[0];
type HostCallbacks = {
  onMessage: (host: string, message: AgentMessage) => void;
  onStarted: (host: string) => void;
  onLost: (host: string, error: EngineError) => void;
  onGivenUp: (host: string, error: EngineError) => void;
};
type OfHost = Omit<AgentOptions, "host" | "launcher" | keyof HostCallbacks> & HostCallbacks;

const HOST_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

/** @throws {InvalidInputError} If processes and files cannot have this name. */
export function checkHostNames(names: readonly string[]): void {
  if (names.length === 0) {
    throw new InvalidInputError("Cannot start workers because no host is named: name one", {});
  }
  for (const host of names.filter((name) => !HOST_NAME.test(name))) {
    const text = `Cannot name a host '${host}' because a name has at most 63 characters: ` +
      "letters, digits, '.', '_' and '-'. Fix: choose another name";
    throw new InvalidInputError(text, { host });
  }
}

/** A host with its launcher created. */
export type Host = Omit<HostOptions, "launcher"> & { launcher: Launcher };

/**
 * The hosts of a run. Each has a separate agent that is adopted, watched, replaced and ended
 * independently.
 */
export class Hosts {
  readonly #hosts: ReadonlyMap<string, Host>;
  readonly #agents: ReadonlyMap<string, HostAgent>;
  readonly #hub: Hub;
  readonly #tenure: Tenure;
  readonly #out = new Set<string>();

  constructor(hosts: ReadonlyMap<string, Host>, options: OfHost) {
    this.#hosts = hosts;
    this.#hub = options.hub;
    this.#tenure = options.tenure;
    const agent = (host: string) =>
      new HostAgent({
        ...options,
        host,
        launcher: hosts.get(host)!.launcher,
        onMessage: (message) => options.onMessage(host, message),
        onStarted: () => options.onStarted(host),
        onLost: (error) => options.onLost(host, error),
        onGivenUp: (error) => {
          this.#out.add(host);
          options.onGivenUp(host, error);
        },
      });
    this.#agents = new Map([...hosts.keys()].map((host) => [host, agent(host)]));
  }

  get #all(): HostAgent[] {
    return [...this.#agents.values()];
  }

  /** Whether no host is left. */
  get areOut(): boolean {
    return this.#out.size === this.#hosts.size;
  }

  /**
   * Adopts the agents of an earlier engine of this run, and starts one where there is none. Ends
   * everything else that was left.
   * @throws {FencedError} If another engine has the run.
   */
  async begin(): Promise<void> {
    if (!await this.#tenure.owns()) throw this.#tenure.ended;
    const found = this.#all.map((agent) => agent.find());
    const kept = found.flatMap((one) => one ?? []);
    for (const agent of this.#all) await agent.sweep(kept);
    for (const [i, agent] of this.#all.entries()) agent.expect(found[i]!);
    await this.#hub.announce();
    const begun = await Promise.allSettled(this.#all.map((agent) => agent.begin()));
    const failed = begun.find((one) => one.status === "rejected");
    if (!failed) return;
    if (!this.#tenure.hasLeft) { // The other hosts' agents have nothing to do.
      this.#tenure.end(failed.reason);
      await this.stop();
    }
    throw failed.reason;
  }

  /** To the host's agent; null while there is none. */
  link(host: string): AgentLink | null {
    return this.#agents.get(host)?.link ?? null;
  }

  /** Of its ranks' sockets; null: loopback. */
  interface(host: string): string | null {
    return this.#hosts.get(host)?.interface ?? null;
  }

  /** The free room for a role on usable hosts. `used`: ranks of it that a host has already. */
  rooms(role: string, used: (host: string) => number): Room[] {
    const usable = [...this.#hosts].filter(([host]) => this.areOut || !this.#out.has(host));
    return usable.map(([host, { ranks, interface: named }]) => ({
      host,
      free: ranks ? Math.max(0, (ranks[role] ?? 0) - used(host)) : Infinity,
      shared: (named ?? null) !== null,
    }));
  }

  /** The hosts that may be used, once each has announced its GPUs or was given up. */
  async gpus(): Promise<HostGpus[]> {
    const announced = await Promise.all(this.#all.map((agent) => agent.gpus()));
    return [...this.#hosts].flatMap(([host, { ranks, interface: named }], i): HostGpus[] => {
      const found = announced[i]!;
      const shared = (named ?? null) !== null;
      return found && !this.#out.has(host) ? [{ host, ...found, ranks, shared }] : [];
    });
  }

  /** What an earlier engine left of a group, by host. The caller becomes responsible for it. */
  takeInherited(group: string): Map<string, AdoptedGroup> {
    const adopted = [...this.#agents].map(([host, agent]) =>
      [host, agent.takeInherited(group)] as const
    );
    return new Map(adopted.filter((one): one is [string, AdoptedGroup] => one[1] !== null));
  }

  /** Ends what an earlier engine left of a group on a host. Its answers are not kept. */
  endInherited(host: string, { group: { group, generation }, tasks }: AdoptedGroup): void {
    const link = this.link(host);
    if (!link) return; // They ended with their agent.
    for (const { task } of tasks) link.release(task);
    link.send({ type: "stop_group", group, generation, grace_ms: DISMISS_GRACE_MS });
  }

  /** News of a group that was not asked for yet: `takeInherited` gives it. */
  keep(host: string, { group, message }: { group: string; message: AgentMessage }): void {
    this.#agents.get(host)?.keep(group, message);
  }

  /** Ends the ranks and agents of all hosts. Only for an engine that ended its own tenure. */
  async stop(): Promise<void> {
    await Promise.all(this.#all.map((agent) => agent.stop()));
  }

  /** Leaves everything running and disconnects. */
  leave(): void {
    for (const agent of this.#all) agent.leave();
  }

  /** Settles when a tenure has ended and nothing is being started or stopped. */
  async settled(): Promise<void> {
    await Promise.all(this.#all.map((agent) => agent.settled()));
  }
}

/** The part of the nonce that names a host. */
export function nonceHost(host: string): { host?: string } {
  return host === LOCAL ? {} : { host };
}
