/** The machines on which agents run: what engines start there outlives them. */
import {
  FakeAgent,
  type FakeIO,
  type SimulatedNetwork,
  type SimulatedProcess,
  type SimulatedWorld,
} from "../../testing/mod.ts";
import type { AgentProcess, Launcher } from "../../workers/processes/local_launcher.ts";

/** The groups of every history. Where there are two hosts, the trainer has a rank on each. */
export const GROUPS = ["trainer", "sampler"];

type Running = { host: string; agent: FakeAgent; process: SimulatedProcess };
type MachineOptions = {
  world: SimulatedWorld;
  network: SimulatedNetwork;
  /** Told of the begin of every operation on every host. */
  began: (host: string, io: FakeIO, args: unknown) => void;
  /** An engine ends an agent. */
  destroys: (engine: SimulatedProcess) => void;
};

export class Machine {
  readonly #running: Running[] = [];

  constructor(readonly options: MachineOptions) {}

  /** As the engine in this process has it. */
  launcher(engine: SimulatedProcess, host: string): Launcher {
    return {
      start: async ({ agent_id, hub_file, log_path }) => {
        await engine.clock.sleep(this.options.world.between(1, 50));
        const process = this.options.world.start(agent_id);
        const line = this.options.network.line(process);
        const agent = new FakeAgent(
          { agent_id, hub_file, log_path },
          this.#script(host, process),
          line,
        );
        agent.live(process.clock);
        agent.exited.then(() => process.kill());
        const running = { host, agent, process };
        this.#running.push(running);
        return this.#processOf(engine, running);
      },
      find: () => {
        const found = this.#living.findLast((running) => running.host === host);
        if (!found) return null;
        const { agentId: agent_id } = found.agent;
        return { agent_id, process: this.#processOf(engine, found), nonce: null };
      },
    };
  }

  #processOf(engine: SimulatedProcess, { agent, process }: Running): AgentProcess {
    const { world, destroys } = this.options;
    const exited = new Promise<string>((resolve) =>
      process.onDeath(() =>
        engine.schedule(
          world.between(1, 200),
          "sees that an agent ended",
          () => resolve("it ended"),
        )
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

  get #living(): Running[] {
    return this.#running.filter(({ agent, process }) => agent.alive && process.state !== "dead");
  }

  /** One of those that live, on any host. */
  #victim(): Running | null {
    const living = this.#living;
    return living.length > 1 ? this.options.world.pick(living) : living[0] ?? null;
  }

  #script(host: string, process: SimulatedProcess) {
    const double = async (args: unknown, io: FakeIO) => {
      this.options.began(host, io, args);
      await process.clock.sleep(this.options.world.between(1, 400), io.signal);
      return (args as { n: number }).n * 2;
    };
    return { operations: Object.fromEntries(GROUPS.map((role) => [role, { double }])) };
  }

  kill(): void {
    this.#victim()?.process.kill();
  }

  freeze(ms: number): void {
    const process = this.#victim()?.process;
    process?.freeze();
    this.options.world.schedule(ms, "the agent thaws", () => process?.thaw());
  }

  /** A rank of some group is killed. */
  loseRank(): void {
    const running = this.#victim();
    const failure = { cause: "signal" as const, signal: "SIGKILL", message: "killed" };
    running?.process.deliver("a rank dies", () => {
      const groups = running.agent.readyGroups;
      if (groups.length > 0) running.agent.failGroup(this.options.world.pick(groups), [failure]);
    });
  }
}
