import { join } from "node:path";
import {
  ArtifactStore,
  CancelledError,
  type Clock,
  type EngineError,
  InfrastructureError,
  systemClock,
} from "../engine/mod.ts";
import { WorkerGroup } from "./fleet/group.ts";
import type { GroupEvent } from "./fleet/group_event.ts";
import type { GroupSpec } from "./fleet/group_spec.ts";
import type { HostGpus } from "./fleet/gpus_on_hosts.ts";
import { type AgentEvent, LOCAL } from "./fleet/host_agent.ts";
import { checkHostNames, type Host, type HostOptions, Hosts, nonceHost } from "./fleet/hosts.ts";
import { Hub } from "./line/hub.ts";
import type { HubDoor } from "./line/hub_door.ts";
import {
  type Launcher,
  localLauncher,
  type LocalLauncherOptions,
} from "./processes/local_launcher.ts";
import { PlacedGroup } from "./fleet/placed_group.ts";
import { homeNonce, processNonce } from "./processes/process_sweep.ts";
import type { AgentMessage } from "./line/protocol.ts";
import type { Phase } from "./roles/role.ts";
import { Tenure } from "./fleet/tenure.ts";
import { type WorkerState, writeWorkerStates } from "./fleet/worker_states.ts";
import { PREEMPT_GRACE_S } from "./workers_config.ts";

/**
 * Events of a run's agents and groups.
 * @internal
 */
export type WorkersEvent =
  | GroupEvent
  | AgentEvent
  | { type: "log"; group: string; rank: number; line: string }
  /** Another engine has the run. `epoch`: its epoch, if that is known. */
  | { type: "fenced"; epoch: number | null };

/** What the agents of a run are started with, and their limits. */
export type WorkersOptions = {
  run: string;
  /** The epoch that the engine appends with. */
  epoch: number;
  home: string;
  /** Which start of the run this is: logs are in HOME/logs/RUN/attempt_N. */
  attempt: number;
  /**
   * Interpreter of the agent: one with websockets, msgpack and msgspec. Not needed with a custom
   * launcher.
   */
  python?: string;
  /** Default: those of the home. */
  artifacts?: ArtifactStore;
  clock?: Clock;
  /** The launcher of the only host, if no hosts are named. */
  launcher?: Launcher;
  /** The hosts of the run by name. Default: this machine, with room for all. */
  hosts?: Readonly<Record<string, HostOptions>>;
  host?: string;
  port?: number;
  grace_ms?: number;
  /** The time from an agent's SIGTERM to its end. */
  preempt_grace_ms?: number;
  /**
   * An agent that an earlier engine started must come within this long of the hub's announcement,
   * or it is ended.
   */
  adopt_ms?: number;
  heartbeat_ms?: number;
  /** An agent that sends nothing for this long is lost. */
  silent_ms?: number;
  /** An agent must have said hello within this long. */
  agent_start_ms?: number;
  /** Environment of every rank. */
  env?: Record<string, string>;
  /** Network interface of the ranks' sockets; null: loopback. */
  interface?: string | null;
  /**
   * Whether this engine still owns the run, according to the store. Asked before any process is
   * started or ended.
   */
  owns?: () => Promise<boolean>;
  /** How long to wait before asking a silent store again. */
  owns_retry_ms?: number;
  /**
   * Whether the work of this key has a recorded result, so that nobody needs the workers' answers.
   */
  isRecorded?: (key: string) => Promise<boolean>;
  onEvent?: (event: WorkersEvent) => void;
  /** Fault tests count hub frames by this. */
  onFrame?: (phase: Phase) => void;
  /** A host is being reclaimed: saves the state of its ranks. */
  onLeaving?: () => Promise<void>;
  /** Instead of a WebSocket server: for simulations. */
  door?: HubDoor;
  /** Keeps the states for `show` of another process. Default: in HOME/runs/RUN/workers.json. */
  writeStates?: (states: WorkerState[]) => Promise<void>;
};

const DEFAULTS = {
  clock: systemClock,
  host: "127.0.0.1",
  port: 0,
  grace_ms: 30_000,
  preempt_grace_ms: PREEMPT_GRACE_S * 1000,
  adopt_ms: 5000,
  heartbeat_ms: 1000,
  silent_ms: 5000,
  agent_start_ms: 30_000,
  env: {},
  interface: null,
  owns: () => Promise.resolve(true),
  owns_retry_ms: 1000,
  isRecorded: () => Promise.resolve(false),
  onEvent: () => {},
  onFrame: () => {},
  onLeaving: () => Promise.resolve(),
} satisfies Partial<WorkersOptions>;

type Settings =
  & Required<Omit<WorkersOptions, "python" | "door" | "launcher" | "hosts">>
  & { hosts: ReadonlyMap<string, Host> };
/**
 * All worker groups of a run. Starts the hub and an agent on each host, or adopts what an earlier
 * engine left. Starts groups, keeps them alive and ends them. A superseded engine ends nothing,
 * because its processes belong to another engine.
 *
 * @example
 * ```ts
 * const workers = await Workers.start({ run, epoch, home, attempt: 1, python });
 * const module = "holdfast_worker.trainer.worker";
 * const place = { group: "trainer", role: "trainer", ranks: 2 };
 * const trainer = workers.group({ ...place, python, module, spec });
 * const { outputs } = await trainer.call("train", args, { key, attempt, signal });
 * await workers.stop();
 * ```
 */
export class Workers {
  #settings: Settings;
  #hub: Hub;
  #tenure: Tenure;
  #hosts: Hosts;
  #groups = new Map<string, PlacedGroup>();
  /** The last generation of each name. */
  #generations = new Map<string, number>();
  #writing: Promise<void> = Promise.resolve();
  #writeWanted = false;

  private constructor(settings: Settings, hub: Hub) {
    this.#settings = settings;
    this.#hub = hub;
    this.#tenure = new Tenure({
      ...settings,
      supersededBy: () => hub.supersededBy(),
      onLeave: (error) => this.#abandon(error),
      onFenced: (epoch) => this.#emit({ type: "fenced", epoch }),
    });
    this.#hosts = new Hosts(settings.hosts, {
      ...settings,
      hub,
      tenure: this.#tenure,
      log_dir: this.logDir,
      onEvent: (event) => this.#emit(event),
      onMessage: (host, message) => this.#receive(host, message),
      onStarted: (host) => this.#on(host).forEach((placed) => placed.attach()),
      onLost: (host, error) => this.#on(host).forEach((placed) => placed.lost(host, error)),
      onGivenUp: (host, error) => this.#evacuate(host, error),
    });
  }

  /**
   * Starts the hub, and on each host adopts the agent that an earlier engine of this run left or
   * starts one. Whatever else was left is ended. Groups are started by `group`.
   * @throws {FencedError} If another engine has the run.
   */
  static async start(options: WorkersOptions): Promise<Workers> {
    const settings = await settingsOf(options);
    const file = join(settings.home, "runs", settings.run, "hub.json");
    const hub = await Hub.listen({ ...settings, file, door: options.door });
    const workers = new Workers(settings, hub);
    try {
      await workers.#hosts.begin();
    } catch (error) {
      await hub.close({ keep_file: workers.#tenure.hasLeft });
      throw error;
    }
    return workers;
  }

  /** HOME/logs/RUN/attempt_N. */
  get logDir(): string {
    const { home, run, attempt } = this.#settings;
    return join(home, "logs", run, `attempt_${attempt}`);
  }

  /**
   * Starts a group; `call` waits until it is ready. Names are unique in a run.
   * @throws {InvalidInputError} If no hosts have room for it.
   */
  group(spec: GroupSpec): WorkerGroup {
    if (this.#groups.has(spec.group)) {
      throw new InfrastructureError(
        `Cannot start group '${spec.group}' because the run already has a group of that name`,
        {
          ...spec,
        },
      );
    }
    const { run, epoch, clock, env, artifacts } = this.#settings;
    const onEvent = (event: GroupEvent) => this.#emit(event);
    const owns = () => this.#tenure.owns();
    const known = { run, epoch, env, artifacts, log_dir: this.logDir, clock, onEvent, owns };
    const after = this.#generations.get(spec.group);
    const used = (host: string) => this.#used(spec, host);
    const placed = new PlacedGroup(spec, { ...known, after, hosts: this.#hosts, used });
    this.#groups.set(spec.group, placed);
    if (this.#tenure.ended) placed.group.end(this.#tenure.ended);
    else placed.attach();
    return placed.group;
  }

  /** Ranks of other groups of a role that a host has. */
  #used({ group, role }: GroupSpec, host: string): number {
    const others = [...this.#groups.values()].filter(({ group: { spec } }) =>
      spec.role === role && spec.group !== group
    );
    return others.reduce((sum, placed) => sum + placed.ranksOn(host), 0);
  }

  /** The hosts that may be used, once each has announced its GPUs or was given up. */
  hostGpus(): Promise<HostGpus[]> {
    return this.#hosts.gpus();
  }

  /** The hosts of a group's ranks. */
  hostsOf(name: string): string[] {
    return [...new Set(this.#groups.get(name)?.hosts)];
  }

  /** Ends a group and its processes; its name is free again. */
  dismiss(name: string): void {
    this.#groups.get(name)?.group.dismiss(
      new CancelledError(`Cannot run an operation on ${name} because it was dismissed`),
    );
    this.#groups.delete(name);
  }

  /** Ends a group that an earlier engine left and this one does not use, and drops its answers. */
  dismissInherited(name: string): void {
    for (const [host, adopted] of this.#hosts.takeInherited(name)) {
      this.#generations.set(name, adopted.group.generation);
      this.#hosts.endInherited(host, adopted);
    }
  }

  /** All requested groups, in any state. */
  groups(): WorkerGroup[] {
    return [...this.#groups.values()].map(({ group }) => group);
  }

  #on(host: string): PlacedGroup[] {
    return [...this.#groups.values()].filter(({ hosts }) => hosts.includes(host));
  }

  /** One entry per rank, or one with `rank: null` for a group whose ranks are not known. */
  states(): WorkerState[] {
    return this.groups().flatMap((group): WorkerState[] => {
      const { role, group: name } = group.spec;
      const known = { role, group: name, generation: group.generation };
      if (group.ranks.length === 0) {
        return [{ ...known, rank: null, pid: null, state: group.state }];
      }
      const gone = group.state === "failed" || group.state === "stopped";
      return group.ranks.map(({ rank, pid, state }) => ({
        ...known,
        rank,
        pid,
        state: gone ? group.state : state,
      }));
    });
  }

  /**
   * Asks all ranks and agents to end, then kills them. When it settles nothing is alive, unless
   * another engine owns it.
   */
  async stop(): Promise<void> {
    if (!this.#tenure.ended && await this.#tenure.owns()) {
      this.#end(new CancelledError("Cannot run an operation because the workers were stopped"));
      await this.#hosts.stop();
    }
    await this.#hosts.settled();
    await this.#hub.close({ keep_file: this.#tenure.hasLeft });
    await this.#writing;
  }

  /** Moves the host's groups to hosts that have room, or ends them. */
  #evacuate(host: string, error: EngineError): void {
    if (this.#hosts.areOut) return this.#end(error);
    for (const placed of this.#on(host)) placed.move(host, error);
  }

  #end(error: EngineError): void {
    this.#tenure.end(error);
    for (const group of this.groups()) group.end(error);
  }

  /** Fails every call and drops every connection. Touches no process and no file. */
  #abandon(error: EngineError): void {
    this.#hosts.leave();
    for (const group of this.groups()) group.end(error);
  }

  #receive(host: string, message: AgentMessage): void {
    switch (message.type) {
      case "fenced":
        return this.#tenure.fenced(message.epoch);
      case "heartbeat":
        for (const state of message.groups) this.#groups.get(state.group)?.refresh(host, state);
        return;
      case "log":
        return this.#emit(message);
      case "group":
      case "rendezvous":
        return this.#hand(host, { group: message.group, message });
    }
    if (!("task" in message)) return;
    this.#hand(host, { group: message.task.slice(0, message.task.lastIndexOf("/g")), message });
  }

  #hand(host: string, { group, message }: { group: string; message: AgentMessage }): void {
    const placed = this.#groups.get(group);
    if (placed) placed.receive(host, message);
    else if (message.type !== "progress") this.#hosts.keep(host, { group, message });
  }

  #emit(event: WorkersEvent): void {
    if (event.type === "group") {
      this.#generations.set(event.group, event.generation);
      this.#writeStates();
    }
    this.#settings.onEvent(event);
  }

  /**
   * Writes the states for `show` in another process. The last state wins, earlier ones may be
   * skipped.
   */
  #writeStates(): void {
    if (this.#writeWanted || this.#tenure.hasLeft) return;
    this.#writeWanted = true;
    this.#writing = this.#writing.then(async () => {
      this.#writeWanted = false;
      if (this.#tenure.hasLeft || this.#hub.supersededBy() !== null) return;
      await this.#settings.writeStates(this.states());
    }).catch(() => {}); // Only for display: writes that must be durable report a full disk.
  }
}

async function settingsOf(options: WorkersOptions): Promise<Settings> {
  const { home, run } = options;
  const defined = Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  );
  const writeStates = (workers: WorkerState[]) => writeWorkerStates(workers, { home, run });
  const artifacts = new ArtifactStore(join(home, "artifacts"));
  const settings = { ...DEFAULTS, writeStates, artifacts, ...(defined as WorkersOptions) };
  return { ...settings, hosts: await hostsOf(settings) };
}

async function hostsOf(
  settings: WorkersOptions & { artifacts: ArtifactStore },
): Promise<Map<string, Host>> {
  const { home, run, clock = systemClock, python, launcher, interface: named } = settings;
  const hosts = Object.entries(settings.hosts ?? { [LOCAL]: { launcher, interface: named } });
  checkHostNames(hosts.map(([host]) => host));
  const here = async (host: string): Promise<LocalLauncherOptions> => {
    if (!python) {
      throw new InfrastructureError(
        "Cannot start the workers' agent because no Python interpreter was given: set `python`",
      );
    }
    const nonce = { ...processNonce(await homeNonce(home), run), ...nonceHost(host) };
    const faults_dir = join(home, "runs", run, "faults");
    return { python, nonce, home, artifacts_dir: settings.artifacts.dir, faults_dir, clock };
  };
  const resolved = new Map<string, Host>();
  for (const [host, { launcher: configured = localLauncher, ...options }] of hosts) {
    resolved.set(host, {
      ...options,
      launcher: typeof configured === "function" ? configured(await here(host)) : configured,
    });
  }
  return resolved;
}
