/** One run in this engine: its state, what is in flight, and how it stops. */
import type { ArtifactStore } from "../files/artifacts.ts";
import type { Clock } from "../clock.ts";
import { DrainedError, InvalidInputError } from "../errors.ts";
import type { EngineEventBody, EventListener } from "../events.ts";
import type { Journal } from "../journal/journal.ts";
import type { Stoppable } from "./task.ts";
import type { Configs } from "./recorded_input.ts";
import { Remaking } from "./remaking.ts";
import type { Resource } from "../graph/resource.ts";
import type { Backoff } from "./retry.ts";
import type { Slots } from "../graph/slots.ts";

type ExecutionSettings = {
  run: string;
  epoch: number;
  /** The run's seed: randomness is derived from it and the key, never from the run's id. */
  seed: number;
  graph_hash: string;
  /** The run's configuration, used to read what an older version recorded. */
  configs?: Configs;
  journal: Journal;
  artifacts: ArtifactStore;
  clock: Clock;
  slots: Slots;
  backoff: Backoff;
  resources: ReadonlyMap<string, unknown>;
  onEvent?: EventListener;
};

/**
 * `open`: starts whatever is ready. `draining`: starts nothing new; what is in flight finishes and
 * is recorded. `stopped`: nothing is recorded any more.
 */
type ExecutionState = "open" | "draining" | "stopped";

export class Execution {
  state: ExecutionState = "open";
  /** The first failure of a node of the graph. */
  failure: Error | undefined;
  /** Why it stopped. */
  reason: Error | undefined;
  /** Results that came after their attempt had been given up. */
  late_results = 0;
  readonly remaking = new Remaking();
  readonly #abort = new AbortController();
  readonly #frames = new Set<Stoppable>();
  readonly #parked = new Set<(reason: Error) => void>();
  readonly #signals = new Map<string, ((value: unknown) => void)[]>();
  #active = 0;
  #quiet: (() => void)[] = [];
  #settled: (() => void)[] = [];
  #checking = false;

  constructor(readonly settings: ExecutionSettings) {}

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  event(body: EngineEventBody): void {
    const { onEvent, run, clock } = this.settings;
    if (!onEvent) return;
    try {
      onEvent({ run, at_ms: clock.now(), ...body });
    } catch (error) {
      // A listener must not be able to end a run; its error goes to the console.
      console.error("An event listener threw:", error);
    }
  }

  /**
   * @throws {InvalidInputError} If it was not provided to the engine. `key`: the entry that
   * requests it.
   */
  resource<T>(token: Resource<T>, key: string): T {
    const { resources } = this.settings;
    if (resources.has(token.name)) return resources.get(token.name) as T;
    const known = [...resources.keys()].join(", ") || "none";
    throw new InvalidInputError(
      `Cannot give resource '${token.name}' to '${key}' because the engine has: ${known}. ` +
        "Add provide(...) to its resources",
    );
  }

  /** Waits until the run stops, then rejects: for work that must not start while the run drains. */
  park<T>(): Promise<T> {
    if (this.reason) return Promise.reject(this.reason);
    return new Promise<T>((_, reject) => this.#parked.add(reject));
  }

  /** Something is running that a drain waits for. */
  enter(): void {
    this.#active++;
  }

  leave(): void {
    this.#active--;
    if (this.#active === 0 && this.state === "draining") this.#checkQuiet();
  }

  addFrame(frame: Stoppable): void {
    this.#frames.add(frame);
  }

  removeFrame(frame: Stoppable): void {
    this.#frames.delete(frame);
    if (this.#frames.size > 0) return;
    for (const wake of this.#settled.splice(0)) wake();
  }

  /** Starts nothing new from here on. */
  drain(): void {
    if (this.state !== "open") return;
    this.state = "draining";
    this.#checkQuiet();
  }

  /** A node of the graph has failed permanently: finish the work in flight, then end the run. */
  fail(error: Error): void {
    if (this.state === "stopped" || error instanceof DrainedError) return;
    this.failure ??= error;
    this.drain();
  }

  /**
   * Ends immediately: running bodies are notified through their signal, and their next action is
   * refused.
   */
  stop(reason: Error): void {
    if (this.state === "stopped") return;
    this.state = "stopped";
    this.reason = reason;
    this.#abort.abort(reason);
    for (const frame of this.#frames) frame.stop(reason);
    for (const reject of this.#parked) reject(reason);
    this.#parked.clear();
    this.#wakeQuiet();
  }

  /** Settles when a draining run has nothing in flight, or when the run has stopped. */
  quiet(): Promise<void> {
    return new Promise((resolve) => {
      this.#quiet.push(resolve);
      if (this.state === "stopped") this.#wakeQuiet();
      else if (this.state === "draining") this.#checkQuiet();
    });
  }

  /** Settles when no body is running any more. */
  settled(): Promise<void> {
    return this.#frames.size === 0
      ? Promise.resolve()
      : new Promise((resolve) => this.#settled.push(resolve));
  }

  /**
   * There may be a moment without activity between a child's end and its parent's next line: check
   * again a turn later.
   */
  #checkQuiet(): void {
    if (this.#checking || this.#active > 0) return;
    this.#checking = true;
    const { journal, clock } = this.settings;
    journal.idle().then(() => clock.pause()).then(() => {
      this.#checking = false;
      if (this.#active === 0 && this.state === "draining") this.#wakeQuiet();
    });
  }

  #wakeQuiet(): void {
    for (const wake of this.#quiet.splice(0)) wake();
  }

  /** Names of the signals that bodies wait for. */
  get awaited(): string[] {
    return [...this.#signals.keys()];
  }

  awaitSignal(name: string): Promise<unknown> {
    return new Promise((resolve) => {
      this.#signals.set(name, [...(this.#signals.get(name) ?? []), resolve]);
    });
  }

  giveSignal(name: string, value: unknown): void {
    for (const wake of this.#signals.get(name) ?? []) wake(value);
    this.#signals.delete(name);
  }

  late(key: string, attempt: number): void {
    this.late_results++;
    this.event({ type: "late_result", key, attempt, count: this.late_results });
  }
}

/**
 * Marks a promise's rejection as handled: it is reported where the promise is awaited, if anywhere.
 */
export function quietly<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
