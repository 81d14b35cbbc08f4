/** The machine on which agents run: what engines start there outlives them. */
import {
  FakeAgent,
  type FakeIO,
  type SimulatedNetwork,
  type SimulatedProcess,
  type SimulatedWorld,
} from "../../testing/mod.ts";
import type { AgentProcess, Launcher } from "../../workers/local_launcher.ts";

/** Operations of agents on every history's machine. */
export const GROUPS = ["trainer", "sampler"];

type Running = { agent: FakeAgent; process: SimulatedProcess };
type MachineOptions = {
  world: SimulatedWorld;
  network: SimulatedNetwork;
  /** Told of the begin of every operation. */
  began: (io: FakeIO, args: unknown) => void;
  /** An engine ends an agent. */
  destroys: (engine: SimulatedProcess) => void;
};

export class Machine {
  readonly #running: Running[] = [];

  constructor(readonly options: MachineOptions) {}

  /** As the engine in this process has it. */
  launcher(engine: SimulatedProcess): Launcher {
    return {
      start: async ({ agentId, hubFile, logPath }) => {
        await engine.clock.sleep(this.options.world.between(1, 50));
        const process = this.options.world.start(agentId);
        const line = this.options.network.line(process);
        const agent = new FakeAgent({ agentId, hubFile, logPath }, this.#script(process), line);
        agent.live(process.clock);
        agent.exited.then(() => process.kill());
        this.#running.push({ agent, process });
        return this.#told(engine, { agent, process });
      },
      find: () => {
        const found = this.#living();
        return found && { agentId: found.agent.agentId, process: this.#told(engine, found), nonce: null };
      },
    };
  }

  #told(engine: SimulatedProcess, { agent, process }: Running): AgentProcess {
    const { world, destroys } = this.options;
    const exited = new Promise<string>((resolve) =>
      process.onDeath(() =>
        engine.schedule(world.between(1, 200), "sees that an agent ended", () => resolve("it ended"))
      )
    );
    const destroy = async () => {
      if (process.state !== "dead") destroys(engine);
      world.trace(`${engine.name} ends ${agent.agentId}`);
      process.kill();
      await engine.clock.sleep(1);
    };
    return { pid: process.pid, exited, destroy };
  }

  #living(): Running | null {
    return this.#running.findLast(({ agent, process }) => agent.alive && process.state !== "dead") ?? null;
  }

  #script(process: SimulatedProcess) {
    const double = async (args: unknown, io: FakeIO) => {
      this.options.began(io, args);
      await process.clock.sleep(this.options.world.between(1, 400), io.signal);
      return (args as { n: number }).n * 2;
    };
    return { operations: Object.fromEntries(GROUPS.map((role) => [role, { double }])) };
  }

  kill(): void {
    this.#living()?.process.kill();
  }

  freeze(ms: number): void {
    const process = this.#living()?.process;
    process?.freeze();
    this.options.world.schedule(ms, "the agent thaws", () => process?.thaw());
  }

  /** A rank of some group is killed. */
  loseRank(): void {
    const running = this.#living();
    const failure = { cause: "signal" as const, signal: "SIGKILL", message: "killed" };
    running?.process.deliver("a rank dies", () => {
      const groups = running.agent.readyGroups;
      if (groups.length > 0) running.agent.failGroup(this.options.world.pick(groups), [failure]);
    });
  }
}
