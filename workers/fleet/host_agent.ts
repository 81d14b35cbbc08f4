import { join } from "node:path";
import {
  type Clock,
  type EngineError,
  InfrastructureError,
  WorkerLostError,
} from "../../engine/mod.ts";
import { type AgentLink, heldTasks, type Hello } from "../line/agent_link.ts";
import type { Hub } from "../line/hub.ts";
import type { Inherited } from "./inheritance.ts";
import type { AgentProcess, Launcher, LivingAgent } from "../processes/local_launcher.ts";
import type { AgentMessage } from "../line/protocol.ts";
import { ReplacementBudget } from "../failures/replacement_budget.ts";
import { sleepAwake, watchAgent } from "./supervision.ts";
import type { Tenure } from "./tenure.ts";

export type AgentEvent = {
  type: "agent";
  agent_id: string;
  state: "started" | "adopted" | "attached" | "leaving" | "lost" | "stopped";
  pid: number;
  reason?: string;
};

type HostAgentOptions = {
  /** Names its agents. */
  host: string;
  hub: Hub;
  launcher: Launcher;
  /** Asked before any process is ended or started. */
  tenure: Tenure;
  clock: Clock;
  /** For what the agent itself prints. */
  log_dir: string;
  /**
   * An agent that an earlier engine started must come within this long of the hub's announcement,
   * or it is ended.
   */
  adopt_ms: number;
  /** An agent that sends nothing for this long is lost. */
  silent_ms: number;
  /** An agent must have said hello within this long. */
  agent_start_ms: number;
  /**
   * Whether the work of this key has a recorded result, so that nobody needs the workers' answers.
   */
  isRecorded: (key: string) => Promise<boolean>;
  onEvent: (event: AgentEvent) => void;
  onMessage: (message: AgentMessage) => void;
  /** The host is being reclaimed: saves the state of its ranks that must be saved. */
  onLeaving: () => Promise<void>;
  /** There is a new agent, without any group. */
  onStarted: (link: AgentLink) => void;
  /** The agent was lost, and every rank with it. */
  onLost: (error: EngineError) => void;
  /** No agent will come any more. */
  onGivenUp: (error: EngineError) => void;
};

/** Time for the agent to end its ranks and itself on request. */
const SHUTDOWN_MS = 5000;

/** The share of a host's remaining time for saving. The rest is for ending its ranks. */
const LEAVING_SHARE = 0.8;

type Agent = {
  id: string;
  link: AgentLink;
  process: AgentProcess;
  watch: AbortController;
  /** Its host is being reclaimed; `leaving` resolves when nothing more is expected of it. */
  taken: boolean;
  leaving: PromiseWithResolvers<string>;
};

function agentOf(agent: Pick<Agent, "id" | "link" | "process">): Agent {
  return { ...agent, watch: new AbortController(), taken: false, leaving: Promise.withResolvers() };
}

/** The GPUs that an agent announced. */
type AnnouncedGpus = Pick<Hello, "gpus" | "gpu_order">;

/** What the adopted agent holds of a group that this engine has not requested yet. */
export type AdoptedGroup = Inherited & { news: AgentMessage[] };

/** The host of a run that names no hosts: this machine. */
export const LOCAL = "local";

/**
 * The agent of a host through its life: adopted or started, watched, replaced when it is lost,
 * and ended.
 */
export class HostAgent {
  #options: HostAgentOptions;
  #agent: Agent | null = null;
  #budget = new ReplacementBudget();
  /** Agents so far. */
  #count = 0;
  #inherited = new Map<string, AdoptedGroup>();
  /** By its newest agent. */
  #gpus: AnnouncedGpus | null = null;
  #announced = Promise.withResolvers<void>();
  #supervised: Promise<void> = Promise.resolve();
  #adopted: Promise<boolean> = Promise.resolve(false);

  constructor(options: HostAgentOptions) {
    this.#options = options;
  }

  /** The link to the current agent; null while there is none. */
  get link(): AgentLink | null {
    return this.#agent?.link ?? null;
  }

  /**
   * Settles when an agent has announced its GPUs. Null: it was given up, stopped or left before.
   */
  async gpus(): Promise<AnnouncedGpus | null> {
    await this.#announced.promise;
    return this.#gpus;
  }

  /** The agent that an earlier engine of this run left here. */
  find(): LivingAgent | null {
    return this.#options.launcher.find?.() ?? null;
  }

  /** Ends everything that was left here except these. */
  async sweep(kept: readonly LivingAgent[]): Promise<void> {
    await this.#options.launcher.sweep?.(kept);
  }

  /** Admits this agent once the hub is announced. */
  expect(found: LivingAgent | null): void {
    if (!found) return;
    this.#adopted = this.#adopt(found);
    // `begin` throws it. If the hub cannot be announced, that error is reported instead.
    this.#adopted.catch(() => {});
  }

  /**
   * Adopts the agent that is expected, or starts one.
   * @throws {FencedError} If another engine has the run.
   */
  async begin(): Promise<void> {
    if (!await this.#adopted) await this.#start();
  }

  /** What an earlier engine left of this group, for the one that adopts it. */
  takeInherited(group: string): AdoptedGroup | null {
    const adopted = this.#inherited.get(group) ?? null;
    this.#inherited.delete(group);
    return adopted;
  }

  /** News of a group that this engine has not requested yet: `takeInherited` returns it. */
  keep(group: string, message: AgentMessage): void {
    this.#inherited.get(group)?.news.push(message);
  }

  /**
   * Asks the ranks and the agent to end, then kills them. Only for an engine that ended its own
   * tenure.
   */
  async stop(): Promise<void> {
    const agent = this.#agent;
    this.#announced.resolve();
    if (!agent) return;
    const { clock, hub, tenure } = this.#options;
    agent.watch.abort();
    const late = new AbortController();
    if (agent.link.attached) {
      agent.link.send({ type: "shutdown" });
      const waited = clock.sleep(SHUTDOWN_MS, late.signal).catch(() => {});
      await Promise.race([agent.process.exited, waited]);
      late.abort(new Error("the agent has ended"));
    }
    this.#agent = null;
    // The run's lease may have run out meanwhile: then the agent may serve another engine.
    if (await tenure.isLost()) {
      tenure.leave();
      return this.#letBe(agent);
    }
    await agent.process.destroy();
    hub.forget(agent.id);
    this.#emit(agent, "stopped");
  }

  /** Leaves the agent and its ranks running, and drops the connection. */
  leave(): void {
    this.#announced.resolve();
    this.#letBe(this.#agent);
    this.#agent = null;
  }

  #letBe(agent: Agent | null): void {
    agent?.watch.abort();
    agent?.process.leave?.();
    this.#options.hub.leave();
  }

  /** Settles when a tenure has ended and nothing is being started or stopped. */
  settled(): Promise<void> {
    return this.#supervised;
  }

  /** Adopts a living agent if it connects in time; else ends it. */
  async #adopt({ agent_id, process }: LivingAgent): Promise<boolean> {
    const { clock, adopt_ms, hub, tenure } = this.#options;
    const link = hub.expect(agent_id, { adopted: true });
    const came = Promise.withResolvers<Hello>();
    link.onMessage = (message) => {
      if (message.type === "hello" && !this.#agent) this.#inherit(message, came.resolve);
      this.#receive(message);
    };
    const late = new AbortController();
    const tooLate = sleepAwake(clock, adopt_ms, late.signal).then(() => null, () => null);
    const hello = await Promise.race([came.promise, process.exited.then(() => null), tooLate]);
    late.abort(new Error("the agent has come"));
    if (!await tenure.owns()) throw tenure.ended;
    if (!hello) {
      this.#inherited.clear();
      hub.forget(agent_id);
      await process.destroy();
      return false;
    }
    await this.#dropRecorded(link);
    this.#count += 1;
    this.#watch(agentOf({ id: agent_id, link, process }), "adopted");
    return true;
  }

  /** Runs immediately, so that the agent's next messages find their group. */
  #inherit(hello: Hello, came: (hello: Hello) => void): void {
    const tasks = heldTasks(hello);
    for (const group of hello.groups) {
      this.#inherited.set(group.group, {
        group,
        tasks: tasks.filter((task) => task.group === group.group),
        news: [],
      });
    }
    came(hello);
  }

  /**
   * Releases recorded answers. The previous engine may have died after it wrote a row and before it
   * released the answer.
   */
  async #dropRecorded(link: AgentLink): Promise<void> {
    for (const adopted of this.#inherited.values()) {
      const recorded = await Promise.all(
        // If the store does not answer, the agent keeps the answer. That only costs space.
        adopted.tasks.map(({ key, state }) =>
          state === "finished" && this.#options.isRecorded(key).catch(() => false)
        ),
      );
      for (const [i, { task }] of adopted.tasks.entries()) if (recorded[i]) link.release(task);
      adopted.tasks = adopted.tasks.filter((_, i) => !recorded[i]);
    }
  }

  async #start(): Promise<void> {
    const { host, hub, launcher, log_dir, tenure } = this.#options;
    this.#count += 1;
    const id = `${host}-${this.#count}`;
    const link = hub.expect(id);
    link.onMessage = (message) => this.#receive(message);
    const log_path = join(log_dir, `agent.${host === LOCAL ? "" : `${host}.`}${this.#count}.log`);
    const started = await launcher.start({ agent_id: id, hub_file: hub.file, log_path });
    if (tenure.ended) return await started.destroy(); // Stopped in the meantime.
    this.#watch(agentOf({ id, link, process: started }), "started");
    this.#options.onStarted(link);
  }

  #watch(agent: Agent, state: "started" | "adopted"): void {
    this.#agent = agent;
    this.#emit(agent, state);
    this.#supervised = this.#supervise(agent);
  }

  async #supervise(agent: Agent): Promise<void> {
    const { host, clock, hub, tenure, silent_ms, agent_start_ms, onLost } = this.#options;
    const exited = Promise.race([agent.process.exited, agent.leaving.promise]);
    const limits = {
      clock,
      silent_ms,
      start_ms: agent_start_ms,
      exited,
      signal: agent.watch.signal,
    };
    const end = await watchAgent(agent.link, limits);
    if (!end || tenure.ended || !await tenure.owns() || tenure.ended) return;
    this.#agent = null;
    this.#inherited.clear();
    hub.forget(agent.id);
    await agent.process.destroy();
    this.#emit(agent, "lost", end.reason);
    const where = host === LOCAL ? "this host" : `host '${host}'`;
    const what = `Cannot continue with the workers of ${where}`;
    const text = `${what} because their agent was lost: ${end.reason}`;
    const counted = !agent.taken; // A reclaimed host says nothing about the work.
    const error = new WorkerLostError(text, { agent_id: agent.id, reason: end.reason }, {
      counted,
    });
    onLost(error);
    if (tenure.ended) return;
    if (!this.#budget.spend(error)) return this.#giveUp(error);
    try {
      await this.#start();
    } catch (cause) {
      this.#giveUp(cause instanceof InfrastructureError ? cause : error);
    }
  }

  #giveUp(cause: EngineError): void {
    const text =
      `${cause.message}\n  It was started ${this.#count} times without a completed operation`;
    const error = new WorkerLostError(text, cause.facts, { cause, retryable: false });
    this.#options.onGivenUp(error);
    this.#announced.resolve();
  }

  /**
   * Saves what must be saved while the ranks of a reclaimed host are still alive, then gives them
   * up.
   */
  async #leaveHost(grace_ms: number): Promise<void> {
    const agent = this.#agent;
    if (!agent || agent.taken) return;
    agent.taken = true;
    this.#emit(agent, "leaving");
    const { clock, onLeaving } = this.#options;
    const over = new AbortController();
    const waited = clock.sleep(grace_ms * LEAVING_SHARE, over.signal).catch(() => {});
    await Promise.race([onLeaving().catch(() => {}), agent.process.exited, waited]);
    over.abort(new Error("everything that had to be saved is saved"));
    agent.leaving.resolve("its host is being reclaimed (SIGTERM)");
  }

  #receive(message: AgentMessage): void {
    if (message.type === "hello") {
      this.#gpus = { gpus: message.gpus, gpu_order: message.gpu_order };
      this.#announced.resolve();
      if (this.#agent) this.#emit(this.#agent, "attached");
    }
    if (message.type === "result") this.#budget.progressed();
    if (message.type === "leaving") return void this.#leaveHost(message.grace_ms);
    this.#options.onMessage(message);
  }

  #emit({ id, process }: Agent, state: AgentEvent["state"], reason?: string): void {
    const event = { type: "agent" as const, agent_id: id, state, pid: process.pid };
    this.#options.onEvent(reason === undefined ? event : { ...event, reason });
  }
}
