/**
 * A run whose agent lives in a network namespace of its own: engine and agent are two hosts with a
 * cable between them that a test may pull. Needs root, `ip`, `ss` and `nft`.
 */
import { strictEqual } from "node:assert/strict";
import { ensureEnvironment, environmentKind } from "../../../workers/mod.ts";

/** One line that says why namespaces cannot be made here; null if they can. */
export async function noNamespaces(): Promise<string | null> {
  const probe = `holdfast-probe-${Deno.pid}`;
  try {
    await command(`ip netns add ${probe}`);
    await command(`ip netns exec ${probe} nft list tables`);
    return null;
  } catch (error) {
    return `network namespaces cannot be made: ${(error as Error).message}`;
  } finally {
    await command(`ip netns del ${probe}`).catch(() => {});
  }
}

export class AgentNetwork {
  readonly #name: string;
  /** The engine's address, which the agent reaches through the cable. */
  readonly host: string;
  /** An interpreter that runs agents in the namespace, and everything else where it is called. */
  readonly python: string;

  private constructor(name: string, options: { host: string; python: string }) {
    this.#name = name;
    this.host = options.host;
    this.python = options.python;
  }

  /** Makes the namespace and the cable. `dir` takes the interpreter. */
  static async create(dir: string): Promise<AgentNetwork> {
    const id = crypto.getRandomValues(new Uint8Array(3));
    // Interfaces have 15 characters.
    const name = `hf${[...id].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    const subnet = `10.${64 + (id[0]! % 64)}.${id[1]}`;
    const last = id[2]! & 0xfc;
    const python = `${dir}/python_in_${name}`;
    const real = await ensureEnvironment(environmentKind("torch"));
    await Deno.writeTextFile(
      python,
      `#!/bin/sh\ncase "$*" in\n*holdfast_worker.agent*) exec nsenter --net=/run/netns/${name} ${real} "$@" ;;\n` +
        `*) exec ${real} "$@" ;;\nesac\n`,
      { mode: 0o755 },
    );
    const network = new AgentNetwork(name, { host: `${subnet}.${last + 1}`, python });
    try {
      await command(`ip netns add ${name}`);
      await command(`ip link add ${name}e type veth peer name ${name}a`);
      await command(`ip link set ${name}a netns ${name}`);
      await command(`ip addr add ${network.host}/30 dev ${name}e`);
      await command(`ip link set ${name}e up`);
      await network.#inside(`ip addr add ${subnet}.${last + 2}/30 dev ${name}a`);
      await network.#inside("ip link set lo up");
      await network.#inside(`ip link set ${name}a up`);
      await network.#inside("nft add table inet wall");
      await network.#inside("nft add chain inet wall out { type filter hook output priority 0; }");
      return network;
    } catch (error) {
      await network.close();
      throw error;
    }
  }

  /** Pulls the cable, or puts it back. */
  async cable(state: "up" | "down"): Promise<void> {
    await command(`ip link set ${this.#name}e ${state}`);
  }

  /** Drops what the agent sends and `match` names; what the engine sends arrives. */
  async drop(match: string): Promise<void> {
    await this.#inside(`nft add rule inet wall out ip daddr ${this.host} ${match} drop`);
  }

  async undrop(): Promise<void> {
    await this.#inside("nft flush chain inet wall out");
  }

  /** Connections that the engine's host takes for open. */
  async connections(): Promise<number> {
    const args = ["-Htn", "state", "established", "src", this.host];
    const { stdout } = await new Deno.Command("ss", { args, stdin: "null" }).output();
    return new TextDecoder().decode(stdout).split("\n").filter(Boolean).length;
  }

  async close(): Promise<void> {
    await command(`ip link del ${this.#name}e`).catch(() => {});
    await command(`ip netns del ${this.#name}`).catch(() => {});
  }

  async #inside(line: string): Promise<void> {
    await command(`ip netns exec ${this.#name} ${line}`);
  }
}

/** A line of words; nothing in it is quoted. */
async function command(line: string): Promise<void> {
  const [name, ...args] = line.split(" ").filter(Boolean);
  const { code, stderr } = await new Deno.Command(name!, {
    args,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  })
    .output();
  strictEqual(code, 0, `${line}: ${new TextDecoder().decode(stderr)}`);
}
