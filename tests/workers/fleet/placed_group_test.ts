import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { InfrastructureError } from "../../../engine/mod.ts";
import { fakeLauncher } from "../../../testing/mod.ts";
import type { Launcher } from "../../../workers/mod.ts";
import { gate, groupSpec } from "../fixtures.ts";
import { BOTH, both, KEY, REWARD, withHosts } from "./two_fake_hosts.ts";

Deno.test("PlacedGroup: the next engine adopts both agents and what runs on them", () => {
  const started = { one: gate(), two: gate() };
  const finish = gate();
  let runs = 0;
  const script = both((host) => ({
    train: async () => {
      runs += 1;
      started[host as "one" | "two"].open();
      await finish.opened;
      return host;
    },
  }));
  return withHosts(script, async ({ workers, one, two, next }) => {
    const lost = rejects(
      workers.group(BOTH).call("train", null, { ...KEY, recorded: () => new Promise(() => {}) }),
    );
    await Promise.all([started.one.opened, started.two.opened]);
    const { workers: second, events } = await next();
    const group = second.group(BOTH);
    const call = group.call("train", null, { key: "k", attempt: 2, since_attempt: 1 });
    finish.open();
    deepStrictEqual((await call).outputs, ["one", "two"]);
    deepStrictEqual([runs, group.generation, one.length, two.length], [2, 1, 1, 1]);
    strictEqual(
      events.all.filter((event) => event.type === "agent" && event.state === "adopted").length,
      2,
    );
    await workers.stop();
    await lost;
  });
});

Deno.test("PlacedGroup: of a group whose other half is gone nothing is adopted", () => {
  const script = both((host) => ({ score: () => host }));
  return withHosts(script, async ({ workers, one, two, next }) => {
    await workers.group(BOTH).ready();
    const coming = next(); // The first engine has lost the run before it loses the agent.
    two[0]!.exit();
    const { workers: second } = await coming;
    const group = second.group(BOTH);
    deepStrictEqual((await group.call("score", null, KEY)).outputs, ["one", "two"]);
    deepStrictEqual([group.generation, one.length], [2, 1]);
    await workers.stop();
  });
});

/** A host that comes once and never again. */
function once(launcher: Launcher): Launcher {
  let starts = 0;
  const start: Launcher["start"] = (agent) => {
    if (++starts > 1) throw new InfrastructureError("Cannot start the agent: no route to host");
    return launcher.start(agent);
  };
  return { start };
}

for (const room of [true, false]) {
  const name = room ? "move to hosts that have room" : "end where no other has room";
  Deno.test(`PlacedGroup: groups of a host that was given up ${name}; others continue`, () => {
    const script = both((host) => ({ score: () => host }));
    const { launcher, agents } = fakeLauncher(script.two);
    const options = {
      one: { ranks: { trainer: 2, reward: 1 } },
      two: { launcher: once(launcher) },
    };
    return withHosts(script, async ({ workers, events }) => {
      const reward = workers.group(REWARD);
      await workers.group(groupSpec({ group: "critic" })).ready();
      const trainer = workers.group(BOTH);
      await trainer.ready();
      deepStrictEqual(workers.hostsOf("trainer"), ["one", "two"]);
      if (room) workers.dismiss("critic");
      agents[0]!.exit();
      await events.until((event) => event.type === "agent" && event.state === "lost");
      if (room) deepStrictEqual((await trainer.call("score", null, KEY)).outputs, ["one", "one"]);
      else await rejects(trainer.call("score", null, KEY), /no route to host\n.*started 2 times/);
      deepStrictEqual((await reward.call("score", null, KEY)).outputs, ["scored"]);
      strictEqual(reward.generation, 1);
    }, options);
  });
}
