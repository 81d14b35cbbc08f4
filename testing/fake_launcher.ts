/** For tests of flows, and for trying a graph without Python. */
import { FakeAgent } from "./fake_agent.ts";
import type { FakeScript } from "./fake_script.ts";
import type { AgentProcess, Launcher } from "../workers/mod.ts";

/**
 * A launcher of fake agents, and the agents that it started.
 *
 * @example
 * ```ts
 * const train = () => ({ version: "v1", steps: [] });
 * const { launcher } = fakeLauncher({ operations: { trainer: { train } } });
 * const workers = await Workers.start({ run: "test", epoch: 1, home, attempt: 1, launcher });
 * ```
 */
export function fakeLauncher(script: FakeScript): { launcher: Launcher; agents: FakeAgent[] } {
  const agents: FakeAgent[] = [];
  const processOf = (agent: FakeAgent): AgentProcess => ({
    pid: 1,
    exited: agent.exited,
    destroy: () => Promise.resolve(agent.exit("the agent was killed by SIGKILL")),
  });
  const launcher: Launcher = {
    start(start) {
      const agent = new FakeAgent(start, script);
      agents.push(agent);
      agent.connect();
      return Promise.resolve(processOf(agent));
    },
    find() {
      const agent = agents.findLast(({ alive }) => alive);
      agent?.follow();
      return agent ? { agent_id: agent.agentId, process: processOf(agent), nonce: null } : null;
    },
  };
  return { launcher, agents };
}
