/** What goes wrong in a history, drawn from its seed. */
import { randomStream } from "../../engine/executor/random.ts";

/** Of the engines; blows last up to four of them. */
export const LEASE_MS = 4000;

type Blow =
  | "kill"
  | "freeze"
  | "drain"
  | "jump"
  | "agent_kill"
  | "agent_freeze"
  | "rank_loss"
  | "cut"
  | "silence";
const ENGINE_BLOWS: Blow[] = ["kill", "freeze", "freeze", "drain", "jump"];
/** They cost no operation: the next engine takes up what was begun. */
const SPARING_BLOWS: Blow[] = ["kill", "freeze", "jump", "cut"];
const WORKER_BLOWS: Blow[] = ["rank_loss", "cut", "cut", "silence"];
/**
 * More of them without a completed operation and the workers are given up: a silent line costs the
 * agent, as its death does.
 */
const AGENT_BLOWS_MAX = 2;
const COSTS_AGENT: Blow[] = ["agent_kill", "agent_freeze", "silence"];

/** What goes wrong in a history. */
export type Chaos = {
  hosts: number;
  /** Operations go to workers over sockets; else they are done in the engine's process. */
  workers: boolean;
  /** Hosts of workers, apart from those of engines. */
  worker_hosts: number;
  /** Kills at the n-th append that arrives at the store: before it is carried out, or after. */
  kills: { append: number; moment: "before" | "after" }[];
  /** What happens to any host at a time. */
  blows: { at_ms: number; kind: Blow; ms: number }[];
  /** Shares of calls that are lost, and whose answers are; and of operations whose worker is. */
  lost: number;
  unanswered: number;
  worker_lost: number;
  latency_ms: [number, number];
};

export const CALM: Chaos = {
  hosts: 1,
  workers: false,
  worker_hosts: 1,
  kills: [],
  blows: [],
  lost: 0,
  unanswered: 0,
  worker_lost: 0,
  latency_ms: [0, 2],
};

export function chaosOf(seed: number): Chaos {
  const random = randomStream("chaos", seed);
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
  const some = <T>(max: number, make: () => T) => Array.from({ length: between(0, max) }, make);
  const jumps = [3_600_000, -3_600_000, -86_400_000];
  const blow = (kind: Blow) => {
    const ms = kind === "jump" ? jumps[between(0, 2)]! : between(1, 4 * LEASE_MS);
    return { at_ms: between(0, 15_000), kind, ms };
  };
  const workers = random() < 0.5;
  const agentBlow = () => blow(random() < 0.5 ? "agent_kill" : "agent_freeze");
  // In a part of the histories nothing but engines and sockets break: there no operation may be
  // begun twice.
  const spare = workers && random() < 0.4;
  const kinds = spare ? SPARING_BLOWS : ENGINE_BLOWS;
  const blows = some(4, () => blow(kinds[between(0, kinds.length - 1)]!));
  if (workers && !spare) {
    blows.push(...some(3, () => blow(WORKER_BLOWS[between(0, WORKER_BLOWS.length - 1)]!)));
    blows.push(...some(AGENT_BLOWS_MAX, agentBlow));
  }
  const costly = blows.filter(({ kind }) => COSTS_AGENT.includes(kind)).slice(AGENT_BLOWS_MAX);
  return {
    workers,
    blows: blows.filter((blow) => !costly.includes(blow)),
    hosts: random() < 0.25 ? 1 : between(2, 3),
    kills: some(3, () => ({ append: between(1, 60), moment: random() < 0.5 ? "before" : "after" })),
    lost: spare || random() < 0.5 ? 0 : random() * 0.05,
    unanswered: spare || random() < 0.5 ? 0 : random() * 0.05,
    worker_lost: spare || random() < 0.5 ? 0 : random() * 0.1,
    latency_ms: [0, between(0, 40)],
    worker_hosts: between(1, 2),
  };
}

/**
 * Whether nothing ends a worker, or the engine's trust in it: a drained engine ends its workers,
 * one whose store is silent too. A task that only one of two hosts had when its engine died begins
 * again.
 */
export function sparesWorkers({ workers, worker_hosts, blows, lost, unanswered }: Chaos): boolean {
  const answered = lost === 0 && unanswered === 0;
  const spared = blows.every(({ kind }) => SPARING_BLOWS.includes(kind));
  return workers && worker_hosts === 1 && answered && spared;
}
