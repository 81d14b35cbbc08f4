/**
 * One history of engines on one store: which crash, freeze, lose calls, have their clocks set, and
 * take over from each other.
 */
import {
  ArtifactStore,
  type Clock,
  Engine,
  type Graph,
  type Outcome,
  provide,
  RunOwnedError,
  stillOwns,
  WorkerLostError,
} from "../../engine/mod.ts";
import {
  type CallFate,
  MemoryStore,
  SimulatedNetwork,
  SimulatedOutage,
  type SimulatedProcess,
  SimulatedStore,
  SimulatedWorld,
} from "../../testing/mod.ts";
import { isRecorded } from "../../runs/session/recorded.ts";
import { callOptions } from "../../workers/call.ts";
import { type HostOptions, type WorkerGroup, Workers } from "../../workers/mod.ts";
import { Audit, digestOf } from "./audit.ts";
import { CALM, type Chaos, chaosOf, LEASE_MS, sparesWorkers } from "./chaos.ts";
import { GROUPS, Machine } from "./machine.ts";
import { type Operate, Operator, type Plan, planOf, SIGNAL, workload } from "./workload.ts";

const RUN = "run";
/** Virtual time within which every history must have ended. */
const LIMIT_MS = 1_800_000;
/** Never written to: values of the workload are small. */
const artifacts = new ArtifactStore("/nonexistent/simulated");

type History = {
  digest: Record<string, unknown>;
  outcome: Outcome | null;
  audit: Audit;
  events: number;
};

type Telling = {
  trace?: (line: string) => void;
  /** Another store than the one that is right. */
  store?: (options: { clock: Clock }) => MemoryStore;
};

/** Tells one history to its end. */
export async function tell(
  { seed, plan, chaos, ...telling }: Telling & { seed: number; plan: Plan; chaos: Chaos },
): Promise<History> {
  const world = new SimulatedWorld(seed, { trace: telling.trace });
  const { clock } = world;
  const store = telling.store?.({ clock }) ?? new MemoryStore({ clock });
  const audit = new Audit(world, store, RUN);
  const definition = workload(plan, (start) => audit.started(start));
  await new Engine({ store, artifacts, clock }).create(definition, {}, { id: RUN });
  const stage = new Theatre({ world, audit, chaos, graph: definition.build({}) });
  stage.begin();
  const intime = await world.run({ ended: () => stage.outcome !== null, limit_ms: LIMIT_MS });
  if (!intime || !stage.outcome) {
    audit.violations.push(`the run did not end: ${world.events} events`);
  }
  audit.checkJournal();
  if (sparesWorkers(chaos)) audit.checkAdopted();
  return { digest: digestOf(store.rows(RUN)), outcome: stage.outcome, audit, events: world.events };
}

/** What is wrong with the history of this seed; empty if nothing is. */
export async function judge(seed: number, telling: Telling = {}): Promise<string[]> {
  const plan = planOf(seed);
  const calm = await tell({ seed, plan, chaos: CALM });
  const stormy = await tell({ seed, plan, chaos: chaosOf(seed), ...telling });
  const wrong = [
    ...calm.audit.violations.map((what) => `undisturbed: ${what}`),
    ...stormy.audit.violations,
  ];
  if (calm.outcome?.status !== "done") {
    wrong.push(`undisturbed it ended ${JSON.stringify(calm.outcome)}`);
  }
  if (JSON.stringify(stormy.outcome) !== JSON.stringify(calm.outcome)) {
    wrong.push(
      `it ended ${JSON.stringify(stormy.outcome)}, undisturbed ${JSON.stringify(calm.outcome)}`,
    );
  }
  for (const name of new Set([...Object.keys(calm.digest), ...Object.keys(stormy.digest)])) {
    const [a, b] = [JSON.stringify(calm.digest[name]), JSON.stringify(stormy.digest[name])];
    if (a !== b) wrong.push(`'${name}' is ${b}, undisturbed ${a}`);
  }
  return wrong;
}

type TheatreOptions = { world: SimulatedWorld; audit: Audit; chaos: Chaos; graph: Graph };

/** The hosts on which engines run, one process each, and what befalls them. */
class Theatre {
  outcome: Outcome | null = null;
  readonly network: SimulatedNetwork;
  readonly machine: Machine;
  readonly #hosts: Host[] = [];
  #appends = 0;

  constructor(readonly options: TheatreOptions) {
    const { world, audit, chaos } = options;
    const network = this.network = new SimulatedNetwork(world, chaos.latency_ms);
    const destroys = (engine: SimulatedProcess) => audit.destroys(engine.owner.boot_id);
    this.machine = new Machine({
      world,
      network,
      destroys,
      began: (...began) => audit.began(...began),
    });
  }

  begin(): void {
    const { world, chaos } = this.options;
    for (let host = 1; host <= chaos.hosts; host++) {
      this.#hosts.push(new Host(this, `engine-${host}`));
      world.schedule(
        world.between(0, 100),
        `engine-${host} starts`,
        () => this.#hosts[host - 1]!.boot(),
      );
    }
    for (const { at_ms, kind, ms } of chaos.blows) {
      world.schedule(at_ms, `chaos: ${kind} ${ms}`, () => this.#strike(kind, ms));
    }
    this.#signalUntilHeard();
  }

  #strike(kind: Chaos["blows"][number]["kind"], ms: number): void {
    const { world } = this.options;
    const host = world.pick(this.#hosts);
    switch (kind) {
      case "kill":
        return host.kill();
      case "drain":
        return host.drain();
      case "jump":
        return host.jump(ms);
      case "freeze":
        return host.freeze(ms);
      case "agent_kill":
        return this.machine.kill();
      case "agent_freeze":
        return this.machine.freeze(ms);
      case "rank_loss":
        return this.machine.loseRank();
      case "cut":
        return this.network.cut();
      case "silence":
        return this.network.silence();
    }
  }

  /** A person who gives the signal, and again if the engine did not take it. */
  #signalUntilHeard(): void {
    const { world } = this.options;
    world.schedule(world.between(0, 3000), "a person looks", () => {
      if (this.outcome) return;
      for (const host of this.#hosts) host.signal();
      this.#signalUntilHeard();
    });
  }

  /** Where calls are lost, and where engines die at an append. */
  fate(
    host: Host,
    process: SimulatedProcess,
    { call, moment }: { call: string; moment: "before" | "after" },
  ): CallFate {
    const { world, chaos } = this.options;
    if (call === "append" && moment === "before") this.#appends++;
    const killed = call === "append" &&
      chaos.kills.some((kill) => kill.append === this.#appends && kill.moment === moment);
    if (killed && host.process === process) host.kill();
    if (moment === "before") return killed || world.chance(chaos.lost) ? "lost" : "answered";
    return world.chance(chaos.unanswered) ? "unanswered" : "answered";
  }
}

/** One machine: an engine runs on it, and is started again after it died. */
class Host {
  process: SimulatedProcess | null = null;
  #engine: Engine | null = null;
  #drain = new AbortController();
  #operations = 0;

  constructor(readonly theatre: Theatre, readonly name: string) {}

  boot(): void {
    const { world, audit, chaos } = this.theatre.options;
    const process = this.process = world.start(this.name);
    const { clock, owner } = process;
    const { latency_ms } = chaos;
    const fate = (call: string, moment: "before" | "after") =>
      this.theatre.fate(this, process, { call, moment });
    const store = new SimulatedStore(audit.over(owner), process, { latency_ms, fate });
    const crew = chaos.workers ? new Crew(this.theatre, { process, store }) : null;
    this.#engine = new Engine({
      store,
      artifacts,
      clock,
      owner,
      lease_ms: LEASE_MS,
      slots: { sampler: 2 },
      backoff: { first_ms: 100, max_ms: 1000 },
      resources: [provide(Operator, crew ? crew.operate : this.#operate(process))],
    });
    this.#serve(process, { engine: this.#engine, crew });
  }

  kill(): void {
    const { world } = this.theatre.options;
    if (!this.process) return;
    world.trace(`${this.name} dies`);
    this.process.kill();
    this.process = null;
    world.schedule(world.between(0, 3 * LEASE_MS), `${this.name} starts again`, () => this.boot());
  }

  freeze(ms: number): void {
    const { process } = this;
    process?.freeze();
    if (process) this.theatre.options.audit.froze(process.owner.boot_id);
    this.theatre.options.world.schedule(ms, `${this.name} thaws`, () => process?.thaw());
  }

  drain(): void {
    this.process?.deliver("drain", () => this.#drain.abort());
  }

  jump(ms: number): void {
    if (this.process) this.process.jumped_ms += ms;
  }

  signal(): void {
    this.process?.deliver(
      "signal",
      () => void this.#engine!.signal(RUN, SIGNAL, 3).catch(() => {}),
    );
  }

  async #serve(
    process: SimulatedProcess,
    { engine, crew }: { engine: Engine; crew: Crew | null },
  ): Promise<void> {
    const { world, audit, graph } = this.theatre.options;
    for (;;) {
      this.#drain = new AbortController();
      try {
        const letGo = async () => await crew?.stop();
        const owned = async (epoch: number) => await crew?.begin(epoch);
        const drain = this.#drain.signal;
        const outcome = await engine.execute(RUN, graph, { drain, owned, letGo });
        if (outcome.status !== "interrupted" && outcome.status !== "fenced") {
          this.theatre.outcome = outcome;
        }
      } catch (error) {
        const usual = error instanceof RunOwnedError || error instanceof SimulatedOutage;
        if (!usual) audit.violations.push(`${this.name} saw ${error}`);
      } finally {
        await crew?.stop();
      }
      await process.clock.sleep(world.between(100, 2000));
    }
  }

  #operate(process: SimulatedProcess): Operate {
    const { world, chaos } = this.theatre.options;
    return async (group, { n }, ctx) => {
      await ctx.durable();
      const operation = ++this.#operations;
      await process.clock.sleep(world.between(1, 400), ctx.signal);
      if (ctx.attempt <= 2 && world.chance(chaos.worker_lost)) {
        throw new WorkerLostError(`Cannot finish operation ${operation} because ${group} was lost`);
      }
      return n * 2;
    };
  }
}

/** The workers of one engine, as a session of the command line has them. */
class Crew {
  #workers: Promise<Workers> | null = null;
  #groups = new Map<string, Promise<WorkerGroup>>();

  constructor(
    readonly theatre: Theatre,
    readonly engine: { process: SimulatedProcess; store: SimulatedStore },
  ) {}

  begin(epoch: number): void {
    const { process, store } = this.engine;
    const { network } = this.theatre;
    const workers = this.#workers = Workers.start({
      run: RUN,
      epoch,
      attempt: epoch,
      home: "/nonexistent",
      clock: process.clock,
      hosts: this.#hosts(),
      door: network.door(process),
      writeStates: () => Promise.resolve(),
      owns: () => stillOwns(store, RUN, epoch),
      isRecorded: (key) => isRecorded(store, RUN, key),
    });
    workers.catch(() => {}); // Told by the first operation.
    for (const group of GROUPS) {
      const ranks = group === "trainer" ? this.theatre.options.chaos.worker_hosts : 1;
      const spec = { group, role: group, ranks, python: "python", module: group, spec: {} };
      const started = workers.then((running) => running.group(spec));
      started.catch(() => {});
      this.#groups.set(group, started);
    }
  }

  /** A rank of the trainer on each; the sampler on the last. */
  #hosts(): Record<string, HostOptions> {
    const { machine, options: { chaos } } = this.theatre;
    const names = ["one", "two"].slice(0, chaos.worker_hosts);
    return Object.fromEntries(names.map((host) => {
      const launcher = machine.launcher(this.engine.process, host);
      const ranks = { trainer: 1, sampler: host === names.at(-1) ? 1 : 0 };
      return [host, { launcher, ranks, interface: "simulated" }];
    }));
  }

  readonly operate: Operate = async (name, args, ctx) => {
    const group = await this.#groups.get(name)!;
    const { outputs } = await group.call("double", args, callOptions(ctx));
    return outputs[0] as number;
  };

  async stop(): Promise<void> {
    const workers = this.#workers;
    this.#workers = null;
    await (await workers?.catch(() => null))?.stop();
  }
}
