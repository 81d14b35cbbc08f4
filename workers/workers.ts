import { dirname, join } from "node:path";
import process from "node:process";
import { z } from "zod";
import {
  CancelledError,
  type Clock,
  type EngineError,
  FencedError,
  InfrastructureError,
  systemClock,
  WorkerLostError,
} from "../engine/mod.ts";
import { type AgentLink, heldTasks, type Hello } from "./agent_link.ts";
import { type GroupEvent, type GroupSpec, WorkerGroup } from "./group.ts";
import { Hub } from "./hub.ts";
import type { HubDoor } from "./hub_door.ts";
import type { Inherited } from "./inheritance.ts";
import { type AgentProcess, type Launcher, type LivingAgent, localLauncher } from "./local_launcher.ts";
import type { Phase } from "./operation_phase.ts";
import { homeNonce, ownNonce, processStart } from "./process_sweep.ts";
import type { AgentMessage } from "./protocol.ts";
import { ReplacementBudget, sleepAwake, watchAgent } from "./supervision.ts";

/** What `show` says of one rank, or of a group that has none. */
export const WorkerState = z.strictObject({
  role: z.string(),
  group: z.string(),
  generation: z.int(),
  rank: z.int().nullable(),
  pid: z.int().nullable(),
  state: z.string(),
});
export type WorkerState = z.infer<typeof WorkerState>;

const WorkersFile = z.strictObject({ engine_pid: z.int(), engine_start: z.string(), workers: z.array(WorkerState) });

export type WorkersEvent =
  | GroupEvent
  | {
    type: "agent";
    agent_id: string;
    state: "started" | "adopted" | "attached" | "lost" | "stopped";
    pid: number;
    reason?: string;
  }
  | { type: "log"; group: string; rank: number; line: string }
  /** Another engine has the run. `epoch`: its epoch, if that is known. */
  | { type: "fenced"; epoch: number | null };

export type WorkersOptions = {
  run: string;
  /** The epoch that the engine appends with. */
  epoch: number;
  home: string;
  /** Which start of the run this is: logs lie in HOME/logs/RUN/attempt_N. */
  attempt: number;
  /** Interpreter of the agent: one with websockets, msgpack and jsonschema. Not needed with a launcher of one's own. */
  python?: string;
  artifactsDir?: string;
  clock?: Clock;
  launcher?: Launcher;
  host?: string;
  port?: number;
  graceMs?: number;
  /** An agent that an earlier engine started must come within this long of the hub's announcement, or it is ended. */
  adoptMs?: number;
  heartbeatMs?: number;
  /** An agent that sends nothing for this long is lost. */
  silentMs?: number;
  /** An agent must have said hello within this long. */
  agentStartMs?: number;
  /** Environment of every rank. */
  env?: Record<string, string>;
  /** Whether this engine was not superseded, as the store says. Asked before any process is ended or started. */
  owns?: () => Promise<boolean>;
  /** After this long a store that did not answer is asked again. */
  ownsRetryMs?: number;
  /** Whether the work of this key has a recorded result: nobody will ask for what workers did for it. */
  isRecorded?: (key: string) => Promise<boolean>;
  onEvent?: (event: WorkersEvent) => void;
  /** Fault tests count hub frames by this. */
  onFrame?: (phase: Phase) => void;
  /** Instead of a WebSocket server: for simulations. */
  door?: HubDoor;
  /** Keeps the states for `show` of another process. Default: in HOME/runs/RUN/workers.json. */
  writeStates?: (states: WorkerState[]) => Promise<void>;
};

const DEFAULTS = {
  clock: systemClock,
  host: "127.0.0.1",
  port: 0,
  graceMs: 30_000,
  adoptMs: 5000,
  heartbeatMs: 1000,
  silentMs: 5000,
  agentStartMs: 30_000,
  env: {},
  owns: () => Promise.resolve(true),
  ownsRetryMs: 1000,
  isRecorded: () => Promise.resolve(false),
  onEvent: () => {},
  onFrame: () => {},
} satisfies Partial<WorkersOptions>;

type Settings = Required<Omit<WorkersOptions, "python" | "artifactsDir" | "door">>;
/** For the agent to end its ranks and itself when it is told to. */
const SHUTDOWN_MS = 5000;
/** A store that does not answer is asked so often whether this engine still owns the run. */
const OWNS_TRIES = 10;

type Agent = { id: string; link: AgentLink; process: AgentProcess; watch: AbortController };

/** What the agent that was adopted holds of a group that this engine has not asked for yet. */
type Left = Inherited & { news: AgentMessage[] };

/**
 * All worker groups of a run: starts the hub and the host's agent, or adopts the one that an earlier engine left, starts groups on
 * it, keeps both alive, and ends everything. An engine that was superseded ends nothing: what it started is another's by then.
 *
 * @example
 * ```ts
 * const workers = await Workers.start({ run, epoch, home, attempt: 1, python });
 * const trainer = workers.group({ group: "trainer", role: "trainer", ranks: 2, python, module: "holdfast_worker.trainer.worker", spec });
 * const { outputs } = await trainer.call("train", args, { key, attempt, signal });
 * await workers.stop();
 * ```
 */
export class Workers {
  #settings: Settings;
  #hub: Hub;
  #groups = new Map<string, WorkerGroup>();
  #agent: Agent | null = null;
  #agentBudget = new ReplacementBudget();
  #agents = 0;
  #inherited = new Map<string, Left>();
  /** The last generation of each name. */
  #generations = new Map<string, number>();
  #ended: EngineError | null = null;
  /** The processes are another engine's, or may be: this one touches none. */
  #left = false;
  #supervised: Promise<void> = Promise.resolve();
  #writing: Promise<void> = Promise.resolve();
  #writeWanted = false;

  private constructor(settings: Settings, hub: Hub) {
    this.#settings = settings;
    this.#hub = hub;
  }

  /**
   * Starts the hub, and adopts the agent that an earlier engine of this run left or starts one. Whatever else was left is
   * ended. Groups are started by `group`.
   * @throws {FencedError} If another engine has the run.
   */
  static async start(options: WorkersOptions): Promise<Workers> {
    const settings = await settingsOf(options);
    const file = join(settings.home, "runs", settings.run, "hub.json");
    const hub = await Hub.listen({ ...settings, file, door: options.door });
    const workers = new Workers(settings, hub);
    try {
      await workers.#begin();
    } catch (error) {
      await hub.close({ keepFile: workers.#left });
      throw error;
    }
    return workers;
  }

  /** HOME/logs/RUN/attempt_N. */
  get logDir(): string {
    const { home, run, attempt } = this.#settings;
    return join(home, "logs", run, `attempt_${attempt}`);
  }

  /** Starts a group; `call` waits until it is ready. Names are unique in a run. */
  group(spec: GroupSpec): WorkerGroup {
    if (this.#groups.has(spec.group)) {
      throw new InfrastructureError(`Cannot start group '${spec.group}' as the run has one of that name`, { ...spec });
    }
    const { run, epoch, clock, env } = this.#settings;
    const onEvent = (event: GroupEvent) => this.#emit(event);
    const left = this.#inherited.get(spec.group) ?? null;
    this.#inherited.delete(spec.group);
    const after = left?.group.generation ?? this.#generations.get(spec.group);
    const owns = () => this.#owns();
    const group = new WorkerGroup(spec, { run, epoch, after, clock, env, logDir: this.logDir, onEvent, owns });
    this.#groups.set(spec.group, group);
    if (this.#ended) group.end(this.#ended);
    else if (this.#agent) group.attach(this.#agent.link, left);
    for (const message of left?.news ?? []) group.receive(message);
    return group;
  }

  /** Ends a group and its processes; its name is free again. */
  dismiss(name: string): void {
    this.#groups.get(name)?.dismiss(new CancelledError(`Cannot run an operation on ${name} as it was dismissed`));
    this.#groups.delete(name);
  }

  groups(): WorkerGroup[] {
    return [...this.#groups.values()];
  }

  /** One entry per rank, or one with `rank: null` for a group whose ranks are not known. */
  states(): WorkerState[] {
    return this.groups().flatMap((group): WorkerState[] => {
      const { role, group: name } = group.spec;
      const known = { role, group: name, generation: group.generation };
      if (group.ranks.length === 0) return [{ ...known, rank: null, pid: null, state: group.state }];
      const gone = group.state === "failed" || group.state === "stopped";
      return group.ranks.map(({ rank, pid, state }) => ({ ...known, rank, pid, state: gone ? group.state : state }));
    });
  }

  /** Ends all ranks and the agent: asked first, killed after a while. Nothing is alive when it settles, unless it is another's. */
  async stop(): Promise<void> {
    if (!this.#ended && await this.#owns()) {
      this.#ended = new CancelledError("Cannot run an operation as the workers were stopped");
      for (const group of this.groups()) group.end(this.#ended);
      await this.#stopAgent();
    }
    await this.#supervised;
    await this.#hub.close({ keepFile: this.#left });
    await this.#writing;
  }

  async #begin(): Promise<void> {
    if (!await this.#owns()) throw this.#ended;
    const { launcher } = this.#settings;
    const found = launcher.find?.() ?? null;
    await launcher.sweep?.(found);
    const adopted = found && this.#adopt(found);
    await this.#hub.announce();
    if (!await adopted) await this.#startAgent();
  }

  /** Goes on with an agent that lives, if it comes in time; else ends it. */
  async #adopt({ agentId, process }: LivingAgent): Promise<boolean> {
    const { clock, adoptMs } = this.#settings;
    const link = this.#hub.expect(agentId, { adopted: true });
    const came = Promise.withResolvers<Hello>();
    link.onMessage = (message) => {
      if (message.type === "hello" && !this.#agent) this.#inherit(message, came.resolve);
      this.#receive(message);
    };
    const late = new AbortController();
    const tooLate = sleepAwake(clock, adoptMs, late.signal).then(() => null, () => null);
    const hello = await Promise.race([came.promise, process.exited.then(() => null), tooLate]);
    late.abort(new Error("the agent has come"));
    if (!await this.#owns()) throw this.#ended;
    if (!hello) {
      this.#inherited.clear();
      this.#hub.forget(agentId);
      await process.destroy();
      return false;
    }
    await this.#dropRecorded(link);
    this.#agents += 1;
    this.#agent = { id: agentId, link, process, watch: new AbortController() };
    this.#emit({ type: "agent", agent_id: agentId, state: "adopted", pid: process.pid });
    this.#supervised = this.#supervise(this.#agent);
    return true;
  }

  /** At once, so that what the agent says next finds the group that it is of. */
  #inherit(hello: Hello, came: (hello: Hello) => void): void {
    const tasks = heldTasks(hello);
    for (const group of hello.groups) {
      this.#inherited.set(group.group, { group, tasks: tasks.filter((task) => task.group === group.group), news: [] });
    }
    came(hello);
  }

  /** The engine before may have died between a row and its word to the agent that the answer is not needed any more. */
  async #dropRecorded(link: AgentLink): Promise<void> {
    for (const left of this.#inherited.values()) {
      const recorded = await Promise.all(
        // If the store does not say, the answer is kept: it does no harm, it only takes room.
        left.tasks.map(({ key, state }) => state === "finished" && this.#settings.isRecorded(key).catch(() => false)),
      );
      for (const [i, { task }] of left.tasks.entries()) if (recorded[i]) link.release(task);
      left.tasks = left.tasks.filter((_, i) => !recorded[i]);
    }
  }

  /**
   * Whether this engine may touch processes and files: the store says that it was not superseded, and no other engine has
   * announced itself since. If not, or if it cannot be known, everything is left as it is.
   */
  async #owns(): Promise<boolean> {
    for (let tries = 1; !this.#ended; tries++) {
      try {
        const owned = await this.#settings.owns();
        if (!owned || this.#hub.supersededBy() !== null) this.#fenced(this.#hub.supersededBy());
        return !this.#left;
      } catch (cause) {
        if (tries >= OWNS_TRIES) this.#leave(unknownOwner(this.#settings.run, cause));
        else await this.#settings.clock.sleep(this.#settings.ownsRetryMs);
      }
    }
    return false;
  }

  /** Whether another engine has the run, or may have it: the store does not say. */
  async #isLost(): Promise<boolean> {
    const owned = await this.#settings.owns().catch(() => false);
    return !owned || this.#hub.supersededBy() !== null;
  }

  /** Touches no process and no file any more. */
  #letBe(agent: Agent | null): void {
    this.#left = true;
    agent?.watch.abort();
    agent?.process.leave?.();
    this.#hub.leave();
  }

  async #startAgent(): Promise<void> {
    this.#agents += 1;
    const id = `local-${this.#agents}`;
    const link = this.#hub.expect(id);
    link.onMessage = (message) => this.#receive(message);
    const logPath = join(this.logDir, `agent.${this.#agents}.log`);
    const started = await this.#settings.launcher.start({ agentId: id, hubFile: this.#hub.file, logPath });
    if (this.#ended) return await started.destroy(); // Stopped in the meantime.
    this.#agent = { id, link, process: started, watch: new AbortController() };
    this.#emit({ type: "agent", agent_id: id, state: "started", pid: started.pid });
    this.#supervised = this.#supervise(this.#agent);
    for (const group of this.groups()) group.attach(link);
  }

  async #supervise(agent: Agent): Promise<void> {
    const { clock, silentMs, agentStartMs } = this.#settings;
    const { exited } = agent.process;
    const limits = { clock, silentMs, startMs: agentStartMs, exited, signal: agent.watch.signal };
    const end = await watchAgent(agent.link, limits);
    if (!end || this.#ended || !await this.#owns() || this.#ended) return;
    this.#agent = null;
    this.#inherited.clear();
    this.#hub.forget(agent.id);
    await agent.process.destroy();
    this.#emit({ type: "agent", agent_id: agent.id, state: "lost", pid: agent.process.pid, reason: end.reason });
    const text = `Cannot go on with the workers of this host as their agent was lost: ${end.reason}`;
    const error = new WorkerLostError(text, { agent_id: agent.id, reason: end.reason });
    for (const group of this.groups()) group.agentLost(error);
    if (this.#ended) return;
    if (!this.#agentBudget.spend(error)) return this.#giveUp(error);
    try {
      await this.#startAgent();
    } catch (cause) {
      this.#giveUp(cause instanceof InfrastructureError ? cause : error);
    }
  }

  #giveUp(error: EngineError): void {
    const options = { cause: error, retryable: false };
    const text = `${error.message}\n  It was started ${this.#agents} times without a completed operation`;
    this.#ended = new WorkerLostError(text, error.facts, options);
    for (const group of this.groups()) group.end(this.#ended);
  }

  async #stopAgent(): Promise<void> {
    const agent = this.#agent;
    if (!agent) return;
    const { clock } = this.#settings;
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
    if (await this.#isLost()) return this.#letBe(agent);
    await agent.process.destroy();
    this.#hub.forget(agent.id);
    this.#emit({ type: "agent", agent_id: agent.id, state: "stopped", pid: agent.process.pid });
  }

  #receive(message: AgentMessage): void {
    switch (message.type) {
      case "hello":
        return this.#emitAttached();
      case "fenced":
        return this.#fenced(message.epoch);
      case "heartbeat":
        for (const state of message.groups) this.#groups.get(state.group)?.refresh(state);
        return;
      case "log":
        return this.#emit(message);
      case "group":
        return this.#hand(message.group, message);
      case "result":
        this.#agentBudget.progressed();
        break;
    }
    if (!("task" in message)) return;
    this.#hand(message.task.slice(0, message.task.lastIndexOf("/g")), message);
  }

  #hand(name: string, message: AgentMessage): void {
    const group = this.#groups.get(name);
    if (group) group.receive(message);
    else if (message.type !== "progress") this.#inherited.get(name)?.news.push(message);
  }

  #emitAttached(): void {
    const agent = this.#agent;
    if (agent) this.#emit({ type: "agent", agent_id: agent.id, state: "attached", pid: agent.process.pid });
  }

  /** Another engine owns the run. */
  #fenced(epoch: number | null): void {
    if (this.#ended) return;
    const own_epoch = this.#settings.epoch;
    const owner = epoch === null ? "another engine" : `epoch ${epoch}`;
    const text = `Cannot go on with this run as ${owner} owns it: this engine has ${own_epoch}`;
    this.#leave(new FencedError(text, { epoch, own_epoch }));
    this.#emit({ type: "fenced", epoch });
  }

  /** Every call fails, connections drop, and no process and no file is touched. */
  #leave(error: EngineError): void {
    this.#ended = error;
    this.#letBe(this.#agent);
    this.#agent = null;
    for (const group of this.groups()) group.end(error);
  }

  #emit(event: WorkersEvent): void {
    if (event.type === "group") {
      this.#generations.set(event.group, event.generation);
      this.#writeStates();
    }
    this.#settings.onEvent(event);
  }

  /** For `show` of another process. The last state wins; a state in between may be skipped. */
  #writeStates(): void {
    if (this.#writeWanted || this.#left) return;
    this.#writeWanted = true;
    this.#writing = this.#writing.then(async () => {
      this.#writeWanted = false;
      if (this.#left || this.#hub.supersededBy() !== null) return;
      await this.#settings.writeStates(this.states());
    }).catch(() => {}); // Only shown: a full disk is found, and told, by what must be durable.
  }
}

function unknownOwner(run: string, cause: unknown): InfrastructureError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const text =
    `Cannot go on with the workers of run '${run}' as the store does not say whether this engine still owns it: ${why}`;
  return new InfrastructureError(text, { run }, { cause });
}

/** Worker states of a run whose engine may be another process; empty if that engine is gone. */
export async function readWorkerStates(home: string, run: string): Promise<WorkerState[]> {
  try {
    const file = WorkersFile.parse(JSON.parse(await Deno.readTextFile(workersFile(home, run))));
    const alive = file.engine_pid === process.pid || processStart(file.engine_pid) === file.engine_start;
    return alive ? file.workers : [];
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

function workersFile(home: string, run: string): string {
  return join(home, "runs", run, "workers.json");
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await Deno.mkdir(dirname(path), { recursive: true });
  await Deno.writeTextFile(`${path}.new`, JSON.stringify(value) + "\n");
  await Deno.rename(`${path}.new`, path);
}

async function settingsOf(options: WorkersOptions): Promise<Settings> {
  const { home, run, clock = systemClock, python, launcher } = options;
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const writeStates = async (workers: WorkerState[]) => {
    const engine_start = processStart(process.pid) ?? "";
    await writeJson(workersFile(home, run), { engine_pid: process.pid, engine_start, workers });
  };
  const settings = { ...DEFAULTS, writeStates, ...(given as WorkersOptions) };
  if (launcher) return { ...settings, launcher };
  if (!python) {
    throw new InfrastructureError("Cannot start the workers' agent as no Python interpreter was given: set `python`");
  }
  const nonce = ownNonce(await homeNonce(home), run);
  const artifactsDir = options.artifactsDir ?? join(home, "artifacts");
  const faultsDir = join(home, "runs", run, "faults");
  return { ...settings, launcher: localLauncher({ python, nonce, artifactsDir, faultsDir, clock }) };
}
