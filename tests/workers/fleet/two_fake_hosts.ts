import { type FakeIO, fakeLauncher, type FakeScript } from "../../../testing/mod.ts";
import {
  type HostOptions,
  Workers,
  type WorkersEvent,
  type WorkersOptions,
} from "../../../workers/mod.ts";
import { Events, groupSpec, withHome } from "../fixtures.ts";

type Agents = ReturnType<typeof fakeLauncher>["agents"];
type Bench = {
  workers: Workers;
  events: Events<WorkersEvent>;
  one: Agents;
  two: Agents;
  /** The run's next engine, which finds the agents. */
  next: () => Promise<{ workers: Workers; events: Events<WorkersEvent> }>;
};

/** Names the work of a call. */
export const KEY = { key: "k", attempt: 1 };
const ROOM = { trainer: 1, reward: 1 };
export const BOTH = groupSpec({ ranks: 2 });
export const REWARD = groupSpec({ group: "reward", role: "reward", hosts: ["one"] });
export const SAMPLER = groupSpec({ group: "sampler/0", role: "sampler", hosts: ["two"] });

type HostsOptions = Partial<WorkersOptions> & {
  one?: Partial<HostOptions>;
  two?: Partial<HostOptions>;
};

/** Workers on two hosts of fake agents. A trainer of two ranks has room only on both. */
export function withHosts(
  scripts: { one: FakeScript; two: FakeScript },
  body: (bench: Bench) => Promise<void>,
  { one = {}, two = {}, ...options }: HostsOptions = {},
): Promise<void> {
  return withHome(async (home) => {
    const [first, second] = [fakeLauncher(scripts.one), fakeLauncher(scripts.two)];
    const hosts: Record<string, HostOptions> = {
      one: { launcher: first.launcher, interface: "eth0", ranks: ROOM, ...one },
      two: { launcher: second.launcher, interface: "eth1", ranks: { ...ROOM, sampler: 1 }, ...two },
    };
    const engines: Workers[] = [];
    let owner = 0;
    const next = async () => {
      const epoch = ++owner;
      const events = new Events<WorkersEvent>();
      const owns = () => Promise.resolve(owner === epoch);
      const base = { run: "run", epoch, attempt: epoch, home, hosts, owns, onEvent: events.push };
      const workers = await Workers.start({ ...base, ...options });
      engines.push(workers);
      return { workers, events };
    };
    const { workers, events } = await next();
    try {
      await body({ workers, events, one: first.agents, two: second.agents, next });
    } finally {
      for (const engine of engines.toReversed()) await engine.stop();
    }
  });
}

/** The same on both hosts, each knowing its name. */
export function both(
  operations: (host: string) => FakeScript["operations"][string],
): { one: FakeScript; two: FakeScript } {
  const script = (host: string) => ({
    operations: {
      trainer: operations(host),
      reward: { score: () => "scored" },
      sampler: { draw: () => "drawn" },
    },
  });
  return { one: script("one"), two: script("two") };
}

/** An operation that lasts until it is cancelled, or its group ends. */
export const never = (_: unknown, { signal }: FakeIO) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("ended"))));
