import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { fakeLauncher } from "../../testing/mod.ts";
import { Hub } from "../../workers/mod.ts";
import { withHome } from "../workers/fixtures.ts";

type Launching = ReturnType<typeof fakeLauncher> & {
  hub: Hub;
  start(agent_id: string): ReturnType<ReturnType<typeof fakeLauncher>["launcher"]["start"]>;
};

/** A launcher, and an engine that its agents find. */
function launching(body: (launching: Launching) => Promise<void>): Promise<void> {
  return withHome(async (home) => {
    const { launcher, agents } = fakeLauncher({ operations: {} });
    const file = `${home}/hub.json`;
    const times = { grace_ms: 20_000, heartbeat_ms: 200 };
    const hub = await Hub.start({ run: "run", file, epoch: 1, ...times });
    const start = (agent_id: string) =>
      launcher.start({ agent_id, hub_file: hub.file, log_path: `${home}/agent.log` });
    try {
      await body({ launcher, agents, hub, start });
    } finally {
      for (const agent of agents) agent.exit();
      await hub.close();
    }
  });
}

Deno.test("fakeLauncher() finds no agent before one was started, and none that was killed", () =>
  launching(async ({ launcher, hub, start }) => {
    hub.expect("a");
    strictEqual(launcher.find!(), null);
    const agent = await start("a");
    strictEqual(launcher.find!()?.agent_id, "a");
    await agent.destroy();
    strictEqual(await agent.exited, "the agent was killed by SIGKILL");
    strictEqual(launcher.find!(), null);
  }));

Deno.test("fakeLauncher() finds the last of the agents that live", () =>
  launching(async ({ launcher, hub, start }) => {
    for (const agent of ["a", "b"]) hub.expect(agent);
    await start("a");
    const second = await start("b");
    strictEqual(launcher.find!()?.agent_id, "b");
    await second.destroy();
    strictEqual(launcher.find!()?.agent_id, "a");
  }));

Deno.test("fakeLauncher() hands over its agents, which say hello to the engine at once", () =>
  launching(async ({ agents, hub, start }) => {
    const heard = Promise.withResolvers<string>();
    hub.expect("a").onMessage = ({ type }) => heard.resolve(type);
    await start("a");
    strictEqual(await heard.promise, "hello");
    deepStrictEqual(agents.map(({ agentId, alive }) => [agentId, alive]), [["a", true]]);
  }));

Deno.test("fakeLauncher() connects no agent where no engine has announced itself", () => {
  const { launcher } = fakeLauncher({ operations: {} });
  throws(() => launcher.start({ agent_id: "a", hub_file: "/nowhere/hub.json", log_path: "" }), {
    name: "InfrastructureError",
    message: "Cannot connect agent 'a' because no engine has announced itself",
  });
});
