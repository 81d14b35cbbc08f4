import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../../engine/mod.ts";
import { FakeFailure, type FakeIO } from "../../../testing/mod.ts";
import type { AgentMessage, EngineMessage, GroupState, RankState } from "../../../workers/mod.ts";
import type { AgentLink, ReliableMessage } from "../../../workers/line/agent_link.ts";
import type { Inherited } from "../../../workers/fleet/inheritance.ts";
import { LAST_WORDS_MS, type Part, Span } from "../../../workers/fleet/span.ts";
import { gate } from "../fixtures.ts";
import { BOTH, both, KEY, never, withHosts } from "./two_fake_hosts.ts";

/** A span over links that keep what is sent. `ranks`: of each host. */
function spanOver(ranks: number[], inherited: Inherited | null = null) {
  const sent: EngineMessage[] = [];
  const states: GroupState[] = [];
  const link = { send: (message: EngineMessage) => void sent.push(message) };
  const parts = ranks.map((count, i): Part => ({
    host: `h${i}`,
    ranks: count,
    interface: `eth${i}`,
    link: link as unknown as AgentLink,
  }));
  const span = new Span(parts, {
    group: "trainer",
    clock: new ManualClock(),
    owns: () => Promise.resolve(true),
    inherited,
    onMessage: () => {},
    onRanks: (state) => states.push(state),
    onBroken: (error) => {
      throw error;
    },
  });
  return { span, sent, states };
}

const rankState = (rank: number, state: RankState["state"]): RankState => ({
  rank,
  pid: 1,
  process_start: "",
  state,
  exit_code: null,
  signal: null,
  process_state: null,
});

Deno.test("Span numbers the ranks of three hosts in a row", () => {
  const { span, sent } = spanOver([2, 1, 3]);
  const start = { type: "start_group", group: "trainer", generation: 1, ranks: 6 };
  span.send(start as unknown as ReliableMessage);
  const meet = { type: "rendezvous", group: "trainer", generation: 1, address: "a", port: 7 };
  span.receive("h0", { ...meet, seq: 1 } as AgentMessage);
  const rendezvous = { address: "a", port: 7 };
  deepStrictEqual(sent.map((message) => message.type === "start_group" && message.part), [
    { first: 0, ranks: 2, rendezvous: null },
    { first: 2, ranks: 1, rendezvous },
    { first: 3, ranks: 3, rendezvous },
  ]);
});

Deno.test("Span keeps each host's share of the ranks that it adopts", () => {
  const adopted = [0, 1, 2, 3].map((rank) => rankState(rank, "ready"));
  const group = { generation: 4, ranks: adopted } as Inherited["group"];
  const { span, states } = spanOver([1, 2, 1], { group, tasks: [] });
  const ended = rankState(3, "exited");
  span.refresh("h2", { group: "trainer", generation: 4, state: "ready", ranks: [ended] });
  deepStrictEqual(states.map(({ ranks }) => ranks), [[...adopted.slice(0, 3), ended]]);
});

const starts = (agents: { received: EngineMessage[] }[]) =>
  agents[0]!.received.filter((message) => message.type === "start_group");

Deno.test("Span: ranks on two hosts meet at one place and answer together", () => {
  const train = (host: string) => (_: unknown, io: FakeIO) => {
    io.blob(new TextEncoder().encode(host));
    return host;
  };
  return withHosts(both((host) => ({ train: train(host) })), async ({ workers, one, two }) => {
    const { outputs, blobs, generation } = await workers.group(BOTH).call("train", null, KEY);
    deepStrictEqual([outputs, generation, new TextDecoder().decode(blobs[0])], [
      ["one", "two"],
      1,
      "one",
    ]);
    const parts = [...starts(one), ...starts(two)].map((
      start,
    ) => [start.interface, start.ranks, start.part]);
    deepStrictEqual(parts, [
      ["eth0", 2, { first: 0, ranks: 1, rendezvous: null }],
      ["eth1", 2, { first: 1, ranks: 1, rendezvous: { address: "fake", port: 1 } }],
    ]);
    deepStrictEqual(workers.states().map(({ rank, state }) => [rank, state]), [[0, "ready"], [
      1,
      "ready",
    ]]);
    deepStrictEqual(workers.hostsOf("trainer"), ["one", "two"]);
  });
});

Deno.test("Span: a rank that dies ends those of the other host, after their last words", () => {
  const clock = new ManualClock();
  const waits = gate(); // For the other host's last words.
  const sleep = clock.sleep.bind(clock);
  clock.sleep = (ms, signal) => {
    if (ms === LAST_WORDS_MS) waits.open();
    return sleep(ms, signal);
  };
  const started = { one: gate(), two: gate() };
  const script = both((host) => ({
    train: (args, io) => (started[host as "one" | "two"].open(), never(args, io)),
    score: () => host,
  }));
  return withHosts(script, async ({ workers, events, one, two }) => {
    const group = workers.group(BOTH);
    const call = rejects(group.call("train", null, KEY), /rank 1 failed: killed/);
    await Promise.all([started.one.opened, started.two.opened]);
    two[0]!.failGroup("trainer", [{
      rank: 1,
      cause: "signal",
      signal: "SIGKILL",
      message: "killed",
    }]);
    const replaced = events.until((event) => event.type === "replaced");
    await waits.opened;
    await clock.advance(LAST_WORDS_MS);
    await Promise.all([call, replaced]);
    deepStrictEqual((await group.call("score", null, KEY)).outputs, ["one", "two"]);
    deepStrictEqual([group.generation, one.length, two.length], [2, 1, 1]);
  }, { clock, silent_ms: 60_000 });
});

Deno.test("Span: a failure of all ranks leaves the group whole, one of some does not", () => {
  const mild = (rank: number) =>
    new FakeFailure({ rank, cause: "user_code", message: "a bad row" });
  const script = both((host) => ({
    all: () => {
      throw mild(host === "one" ? 0 : 1);
    },
    some: () => {
      if (host === "two") throw mild(1);
      return "fine";
    },
    score: () => host,
  }));
  return withHosts(script, async ({ workers }) => {
    const group = workers.group(BOTH);
    await rejects(group.call("all", null, KEY), /a bad row/);
    deepStrictEqual([(await group.call("score", null, KEY)).outputs, group.generation], [[
      "one",
      "two",
    ], 1]);
    await rejects(group.call("some", null, KEY), /a bad row/);
    await group.ready();
    strictEqual(group.generation, 2);
  });
});
