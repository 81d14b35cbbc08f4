/**
 * Two hosts on one machine: network namespaces, each with a cable to a bridge, where the engine
 * listens. What goes on on a host can be killed, frozen, or cut off. Needs root, `ip` and `nft`.
 */
import { strictEqual } from "node:assert/strict";
import { type AgentProcess, type HostOptions, localLauncher } from "../../../workers/mod.ts";

type Ranks = NonNullable<HostOptions["ranks"]>;

/**
 * A namespace whose agents are started through its network: one that is cut off cannot be told to
 * end.
 */
class NamespaceHost {
  #cut = false;

  constructor(readonly name: string, readonly namespace: string, readonly address: string) {}

  /** The interface that its ranks use. */
  get interface(): string {
    return `${this.namespace}a`;
  }

  /** As `SessionOptions.hosts` wants it. */
  options(ranks: Ranks): HostOptions {
    return {
      interface: this.interface,
      ranks,
      launcher: (here) => {
        const local = localLauncher({ ...here, within: ["ip", "netns", "exec", this.namespace] });
        const reached = (process: AgentProcess): AgentProcess => ({
          ...process,
          destroy: async () => this.#cut ? process.leave?.() : await process.destroy(),
        });
        return { ...local, start: async (agent) => reached(await local.start(agent)) };
      },
    };
  }

  async pids(): Promise<number[]> {
    return (await command(`ip netns pids ${this.namespace}`)).split("\n").filter(Boolean).map(
      Number,
    );
  }

  /** To every process of the host, at one moment. */
  async signal(signal: Deno.Signal): Promise<void> {
    for (const pid of await this.pids()) Deno.kill(pid, signal);
  }

  /** Pulls its cable, or puts it back. */
  async cable(state: "up" | "down"): Promise<void> {
    this.#cut = state === "down";
    await command(`ip link set ${this.namespace}e ${state}`);
  }
}

/** The hosts `one` and `two`. */
export class TwoHosts {
  private constructor(
    readonly name: string,
    /** The engine's address, where both reach it. */
    readonly engine: string,
    readonly one: NamespaceHost,
    readonly two: NamespaceHost,
  ) {}

  static async create(): Promise<TwoHosts> {
    const id = crypto.getRandomValues(new Uint8Array(3));
    const hex = [...id].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const name = `hh${hex}`; // Interfaces have at most 15 characters.
    const subnet = `10.${128 + (id[0]! % 64)}.${id[1]}`;
    const one = new NamespaceHost("one", `${name}0`, `${subnet}.2`);
    const two = new NamespaceHost("two", `${name}1`, `${subnet}.3`);
    const hosts = [one, two];
    const network = new TwoHosts(name, `${subnet}.1`, one, two);
    try {
      await command(`ip link add ${name} type bridge`);
      await command(`ip addr add ${network.engine}/24 dev ${name}`);
      await command(`ip link set ${name} up`);
      for (const host of hosts) await connect(host, name);
      return network;
    } catch (error) {
      await network.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const { namespace } of [this.one, this.two]) {
      await command(`ip link del ${namespace}e`).catch(() => {});
      await command(`ip netns del ${namespace}`).catch(() => {});
    }
    await command(`ip link del ${this.name}`).catch(() => {});
  }
}

async function connect({ namespace, address }: NamespaceHost, bridge: string): Promise<void> {
  const inside = (line: string) => command(`ip netns exec ${namespace} ${line}`);
  await command(`ip netns add ${namespace}`);
  await command(`ip link add ${namespace}e type veth peer name ${namespace}a`);
  await command(`ip link set ${namespace}e master ${bridge} up`);
  await command(`ip link set ${namespace}a netns ${namespace}`);
  await inside(`ip addr add ${address}/24 dev ${namespace}a`);
  await inside("ip link set lo up");
  await inside(`ip link set ${namespace}a up`);
}

/** A line of words; nothing in it is quoted. What it printed. */
async function command(line: string): Promise<string> {
  const [name, ...args] = line.split(" ").filter(Boolean);
  const { code, stdout, stderr } = await new Deno.Command(name!, { args, stdin: "null" }).output();
  const text = new TextDecoder();
  strictEqual(code, 0, `${line}: ${text.decode(stderr)}`);
  return text.decode(stdout);
}
