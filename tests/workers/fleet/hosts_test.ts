import { deepStrictEqual, ok, rejects, throws } from "node:assert/strict";
import { WorkerLostError } from "../../../engine/mod.ts";
import { fakeLauncher } from "../../../testing/mod.ts";
import { Workers, type WorkersEvent } from "../../../workers/mod.ts";
import { gate, withHome } from "../fixtures.ts";
import { BOTH, both, KEY, never, REWARD, SAMPLER, withHosts } from "./two_fake_hosts.ts";

Deno.test("hosts: a lost host takes the group down that has a rank there, and no other", () => {
  const started = gate();
  const script = both((host) => ({
    train: (args, io) => (host === "one" && started.open(), never(args, io)),
    score: () => host,
  }));
  return withHosts(script, async ({ workers, events, one, two }) => {
    const [trainer, reward, sampler] = [BOTH, REWARD, SAMPLER].map((spec) => workers.group(spec));
    await Promise.all([reward!.ready(), sampler!.ready()]);
    const call = trainer!.call("train", null, KEY);
    await started.opened;
    two[0]!.exit("the agent was killed by SIGKILL");
    await rejects(
      call,
      (error: Error) => error instanceof WorkerLostError && /host 'two'/.test(error.message),
    );
    deepStrictEqual((await trainer!.call("score", null, KEY)).outputs, ["one", "two"]);
    deepStrictEqual([trainer, reward, sampler].map((group) => group!.generation), [2, 1, 2]);
    deepStrictEqual([one, two].map((agents) => agents.map(({ agentId }) => agentId)), [["one-1"], [
      "two-1",
      "two-2",
    ]]);
    ok(
      one[0]!.received.some((message) => message.type === "stop_group" && message.generation === 1),
    );
    const lost = events.all.filter((event) => event.type === "agent" && event.state === "lost");
    deepStrictEqual(lost.map((event) => event.type === "agent" && event.agent_id), ["two-1"]);
  });
});

Deno.test("hosts: a reclaimed host leaves alone; the others continue their work", () => {
  const script = both((host) => ({ score: () => host }));
  return withHosts(script, async ({ workers, events, one, two }) => {
    const [reward, sampler] = [workers.group(REWARD), workers.group(SAMPLER)];
    await Promise.all([reward.ready(), sampler.ready()]);
    two[0]!.sendRaw(JSON.stringify({ type: "leaving", grace_ms: 60_000 }));
    const back = (event: WorkersEvent) =>
      event.type === "agent" && event.state === "attached" && event.agent_id === "two-2";
    await events.until(back);
    deepStrictEqual((await sampler.call("draw", null, KEY)).outputs, ["drawn"]);
    deepStrictEqual([reward.generation, sampler.generation, one.length], [1, 2, 1]);
  });
});

Deno.test("hosts: stop() ends every agent, unless one tells of a higher epoch", async () => {
  const script = both((host) => ({ score: () => host }));
  await withHosts(script, async ({ workers, one, two }) => {
    await workers.group(BOTH).ready();
    await workers.stop();
    deepStrictEqual([one[0]!.alive, two[0]!.alive], [false, false]);
  });
  await withHosts(script, async ({ workers, events, one, two }) => {
    await workers.group(BOTH).ready();
    two[0]!.sendRaw(JSON.stringify({ type: "fenced", epoch: 9 }));
    await events.until((event) => event.type === "fenced");
    await workers.stop();
    deepStrictEqual([one[0]!.alive, two[0]!.alive], [true, true]);
  });
});

Deno.test("hosts: a group that lost one of its hosts ends what the other holds of it", () => {
  const script = both((host) => ({ score: () => host }));
  const recorded = () => new Promise<void>(() => {});
  return withHosts(script, async ({ workers, one, two, next }) => {
    await workers.group(BOTH).call("score", null, { ...KEY, recorded });
    const coming = next();
    one[0]!.exit();
    const { workers: second } = await coming;
    const group = second.group({ ...BOTH, ranks: 1, hosts: ["one"] });
    await group.ready();
    await second.group(SAMPLER).ready(); // Its host has read what was sent before.
    const [task, stop] = ["release", "stop_group"].map((wanted) =>
      two[0]!.received.filter(({ type, epoch }) => type === wanted && epoch === 2)
    );
    deepStrictEqual(task!.map((message) => message.type === "release" && message.task), [
      "trainer/g1/t1.1",
    ]);
    deepStrictEqual(stop!.map((message) => message.type === "stop_group" && message.generation), [
      1,
    ]);
    await workers.stop();
  });
});

Deno.test("hosts: a group without room and a bad name are refused", async () => {
  await withHosts(both(() => ({})), async ({ workers }) => {
    throws(() => workers.group({ ...BOTH, ranks: 3 }), /the 3 ranks of trainer/);
    await workers.group(BOTH).ready();
  });
  await withHome(async (home) => {
    const { launcher } = fakeLauncher({ operations: {} });
    const options = { run: "run", epoch: 1, attempt: 1, home };
    await rejects(
      Workers.start({ ...options, hosts: { "a/b": { launcher } } }),
      /Cannot name a host 'a\/b'/,
    );
    await rejects(Workers.start({ ...options, hosts: {} }), /no host is named/);
  });
});
