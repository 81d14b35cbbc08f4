/** The engine: creates runs, owns them while it executes their graph, and says how they ended. */
import { recordedField } from "./stores/recorded_head.ts";
import type { ArtifactStore } from "./files/artifacts.ts";
import { canonicalJson } from "./canonical.ts";
import { type Clock, systemClock } from "./clock.ts";
import { DrainedError, FencedError, InvalidInputError, ReplayDriftError } from "./errors.ts";
import type { EventListener } from "./events.ts";
import { Execution, quietly } from "./executor/executor.ts";
import { keepLease, obey } from "./executor/lease.ts";
import { type Outcome, outcomeOf, recordedOutput } from "./executor/outcome.ts";
import type { Prefix } from "./executor/prefix_of.ts";
import type { GraphDefinition } from "./graph/graph.ts";
import { loopTimes } from "./graph/draw.ts";
import type { Graph } from "./graph/types.ts";
import { type AppendFaults, Journal } from "./journal/journal.ts";
import { loadJournal, REOPENED } from "./journal/load.ts";
import { checkJournal } from "./stores/journal_version.ts";
import { cancelRun, takeRun } from "./stores/ownership.ts";
import type { Provided } from "./graph/resource.ts";
import { type Backoff, DEFAULT_BACKOFF } from "./executor/retry.ts";
import { markReopened } from "./executor/reopened.ts";
import { checkRunId, newRunId } from "./run_id.ts";
import { hasEnded } from "./stores/run_life.ts";
import { signalRun } from "./journal/signals.ts";
import { Slots } from "./graph/slots.ts";
import type { NewRun, Owner, RunHead, Store } from "./stores/store.ts";

/** What an engine works with. Everything but the store and the artifacts has a default. */
export type EngineOptions = {
  store: Store;
  artifacts: ArtifactStore;
  clock?: Clock;
  resources?: readonly Provided[];
  /** Tasks that may run at once on each worker group; 1 for groups that are not listed. */
  slots?: Readonly<Record<string, number>>;
  backoff?: Backoff;
  faults?: AppendFaults;
  owner?: Owner;
  /** How long this engine keeps the run without extending its lease. */
  lease_ms?: number;
  /** How often the lease is extended and requests are read. */
  renew_ms?: number;
  /** How long running bodies may take to end after a cancel. */
  cancel_grace_ms?: number;
  onEvent?: EventListener;
};

/** What a run is recorded with, besides its graph and configuration. */
export type CreateOptions = {
  id?: string;
  name?: string;
  /** The module that defines the graph: `resume` imports it. */
  entry?: string;
  packages?: Record<string, string>;
  /** The first rows of its journal; those of a fork, which has a parent: see `prefixOf`. */
  prefix?: { parent?: Prefix["parent"]; rows: Prefix["rows"] };
} & Pick<NewRun, "queue" | "priority" | "needs" | "home">;

/** How a run is executed. */
export type ExecuteOptions = {
  /** Once aborted, nothing new starts; what is in flight finishes and is recorded. */
  drain?: AbortSignal;
  /** Resume even if the graph has changed since the run was created. */
  accept?: boolean;
  /**
   * Earlier configurations, oldest first, that differ only in settings that change no result: what
   * was recorded under them stays valid.
   */
  earlier?: readonly unknown[];
  /** The head, if this engine's owner has already claimed the run; otherwise it is claimed here. */
  claimed?: RunHead;
  /**
   * Called once this engine owns the run, and has reopened a failed one, and awaited: to record
   * what this execution starts with, and to start what stages need. Nothing runs if it throws.
   */
  owned?: (epoch: number) => Promise<void>;
  /**
   * Called before an unfinished run is released, while this engine still owns it, to end what must
   * not overlap with the next owner. Not called once another engine has taken the run.
   */
  letGo?: () => Promise<void>;
  /**
   * Called when everything is recorded, before the store marks the run as done, failed or
   * cancelled. A run that crashes here can be resumed.
   */
  beforeEnd?: () => Promise<void>;
};

/** Only the lease reveals a dead engine on another host. */
export const LEASE_MS = 15_000;

/**
 * Creates and executes runs on a store. One per process is enough: it executes any number of runs
 * side by side.
 */
export class Engine {
  readonly #options: EngineOptions & {
    clock: Clock;
    lease_ms: number;
    renew_ms: number;
    cancel_grace_ms: number;
  };
  readonly #slots: Slots;
  readonly #resources: ReadonlyMap<string, unknown>;
  readonly #executions = new Map<string, Execution>();

  /** With the store, the resources and the slots that its stages need. */
  constructor(options: EngineOptions) {
    const lease_ms = options.lease_ms ?? LEASE_MS;
    const renew_ms = Math.min(1000, lease_ms / 4);
    this.#options = { clock: systemClock, renew_ms, cancel_grace_ms: 10_000, ...options, lease_ms };
    this.#slots = new Slots(options.slots);
    this.#resources = new Map((options.resources ?? []).map(({ name, value }) => [name, value]));
  }

  /**
   * Records a run's head. Runs nothing. Throws zod's error if the configuration is invalid.
   * @throws {InvalidInputError} If the id cannot be a run's, or is taken.
   */
  async create<In, Config, T>(
    definition: GraphDefinition<In, Config, T>,
    config: NoInfer<In>,
    options: CreateOptions = {},
  ): Promise<RunHead> {
    const resolved = definition.config.parse(config);
    const { name, hash, lines, nodes, output, draw } = definition.build(config);
    const loops = loopTimes({ nodes: [...nodes], output });
    const run: NewRun = {
      id: options.id === undefined ? newRunId(name) : checkRunId(options.id),
      name: options.name ?? name,
      entry: options.entry ?? "",
      graph: JSON.stringify({ name, hash, lines, loops, text: draw(), mermaid: draw("mermaid") }),
      graph_hash: hash,
      config: canonicalJson(resolved ?? null),
      packages: canonicalJson(options.packages ?? {}),
      queue: options.queue ?? null,
      priority: options.priority ?? 0,
      needs: options.needs ?? {},
      parent: options.prefix?.parent ?? null,
      home: options.home ?? null,
    };
    return await this.#options.store.create(run, options.prefix?.rows);
  }

  /**
   * Runs the graph to its end, starting where the journal stops. A failed run is reopened, with one
   * new budget for the entries that failed. For a run that has ended, returns its outcome.
   * @throws {RunOwnedError} While another living engine owns the run.
   * @throws {ReplayDriftError} If the graph has changed, unless `accept`.
   */
  async execute<T>(
    run: string,
    graph: Graph<T>,
    options: ExecuteOptions = {},
  ): Promise<Outcome<T>> {
    const { store } = this.#options;
    const before = checkJournal(await this.#known(run));
    if (hasEnded(before)) return await this.#answer(before);
    if (before.graph_hash !== graph.hash && !options.accept) throw graphChanged(before, graph);
    const head = options.claimed ?? await this.#take(run);
    if (hasEnded(head)) return await this.#answer(head);
    let execution: Execution;
    try {
      execution = await this.#open(head, graph, options);
    } catch (error) {
      if (error instanceof FencedError) return { status: "fenced" };
      await options.letGo?.();
      // No stage has started: a retry need not wait for the lease. The claimant decides what
      // happens to the run.
      if (!options.claimed) await store.release(run, head.epoch).catch(() => {});
      throw error;
    }
    this.#executions.set(run, execution);
    const onDrain = () => execution.drain();
    options.drain?.addEventListener("abort", onDrain);
    if (options.drain?.aborted) onDrain();
    const done = new AbortController();
    const keeping = quietly(
      keepLease(execution, { ...this.#options, requests: head.requests, signal: done.signal }),
    );
    try {
      const outcome = await outcomeOf(execution, { ...this.#options, ...options, graph });
      execution.event({ type: "run_ended", status: outcome.status });
      return outcome;
    } finally {
      done.abort();
      await keeping.catch(() => {});
      options.drain?.removeEventListener("abort", onDrain);
      execution.stop(
        new DrainedError(`Cannot continue with run '${run}' because this engine has released it`),
      );
      this.#executions.delete(run);
    }
  }

  /** `signalRun`, seen immediately if this engine executes the run. */
  async signal(run: string, name: string, value: unknown = null): Promise<void> {
    await signalRun(this.#options.store, run, { name, value });
    this.#executions.get(run)?.giveSignal(name, value);
  }

  /**
   * Requests the run's cancellation. Its owner obeys when it next reads the store, or immediately
   * if this engine is the owner.
   */
  async cancel(run: string): Promise<RunHead> {
    const { store, clock, owner, lease_ms } = this.#options;
    const head = await cancelRun(store, run, { lease_ms, clock, owner });
    const execution = this.#executions.get(run);
    if (execution) obey(execution, head.requests);
    return head;
  }

  /** Claims the run. If its owner has ended it in the meantime, returns its head unclaimed. */
  async #take(run: string): Promise<RunHead> {
    const { store, clock, owner, lease_ms } = this.#options;
    try {
      return await takeRun(store, run, { lease_ms, clock, owner });
    } catch (error) {
      const head = await this.#known(run);
      if (hasEnded(head)) return head;
      throw error;
    }
  }

  async #answer<T>({ id, status }: RunHead): Promise<Outcome<T>> {
    return status === "done"
      ? { status, output: await recordedOutput(id, this.#options) as T }
      : { status: "cancelled" };
  }

  async #known(run: string): Promise<RunHead> {
    const head = await this.#options.store.head(run);
    if (!head) {
      throw new InvalidInputError(`Cannot execute run '${run}' because there is no such run`, {
        run,
      });
    }
    return head;
  }

  async #open(
    head: RunHead,
    graph: Graph,
    { earlier, owned }: Pick<ExecuteOptions, "earlier" | "owned">,
  ): Promise<Execution> {
    const { store, artifacts, clock, faults, backoff = DEFAULT_BACKOFF, onEvent } = this.#options;
    const { id: run, epoch } = head;
    let last_seq = head.last_seq;
    if (head.status === "failed") {
      const reopened = await store.reopen(run, epoch);
      if (!reopened.fenced) last_seq = reopened.last_seq;
    }
    const onBroken = (error: Error) => execution.stop(error);
    const journal = new Journal({
      store,
      artifacts,
      run,
      epoch,
      last_seq,
      clock,
      faults,
      onBroken,
    });
    const execution = new Execution({
      run,
      epoch,
      seed: seedOf(recordedField(head, "config")),
      graph_hash: graph.hash,
      configs: { config: graph.config, earlier },
      journal,
      artifacts,
      clock,
      slots: this.#slots,
      backoff,
      resources: this.#resources,
      onEvent,
    });
    if (head.status === "failed") {
      await journal.append([
        await journal.row("recovery", REOPENED, { cause: "resume", error: head.error }),
      ]);
    }
    execution.event({ type: "run_started", epoch, resumed: last_seq > 0, name: head.name });
    await owned?.(epoch);
    const root = { nodes: [...graph.nodes], output: graph.output };
    await loadJournal(journal, root);
    await markReopened(journal, root);
    return execution;
  }
}

function graphChanged(head: RunHead, graph: Graph): ReplayDriftError {
  const before = new Set((recordedField(head, "graph") as { lines?: string[] }).lines ?? []);
  const now = new Set(graph.lines);
  const difference = [
    ...[...before].filter((line) => !now.has(line)).map((line) => `- ${line}`),
    ...[...now].filter((line) => !before.has(line)).map((line) => `+ ${line}`),
  ];
  return new ReplayDriftError(
    `Cannot resume run '${head.id}' because its graph has changed:\n${
      difference.join("\n")
    }\nUse --accept to resume with the new graph.`,
    { run: head.id, difference },
  );
}

/** A configuration's `seed`, else 0. */
function seedOf(config: unknown): number {
  if (typeof config !== "object" || config === null || !("seed" in config)) return 0;
  return typeof config.seed === "number" ? config.seed : 0;
}
