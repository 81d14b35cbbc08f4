/**
 * A world in which engines run as they do in production, but time, turns of the event loop and the
 * store are simulated: one queue of events in virtual time, its order drawn from a seed. One seed
 * is one history, down to the last event.
 *
 * Whatever takes time must come from here: `process.clock`, `SimulatedStore`, or code that asks
 * `process.schedule`. Artifacts are real files, so values that move to them (64 KiB) are no part of
 * a simulation.
 *
 * @example
 * ```ts
 * const world = new SimulatedWorld(17);
 * const shared = new MemoryStore({ clock: world.clock });
 * const process = world.start("engine");
 * const store = new SimulatedStore(shared, process);
 * const engine = new Engine({ store, clock: process.clock, owner: process.owner, artifacts });
 * engine.execute("run", graph).then((outcome) => console.log(outcome));
 * world.schedule(3000, "the engine dies", () => process.kill());
 * await world.run();
 * ```
 */
import { setImmediate } from "node:timers";
import {
  type Clock,
  InfrastructureError,
  type Owner,
  randomStream,
  type Store,
} from "../engine/mod.ts";

type Scheduled = { at_ms: number; order: number; what: string; run: () => void };

/** When the simulation begins, by the wall clock. */
const EPOCH_MS = 1_700_000_000_000;

type WorldOptions = {
  /** Told of every event before it happens. */
  trace?: (line: string) => void;
};

/** What is due next, and what chance decides. */
export class SimulatedWorld {
  /** Virtual milliseconds since the beginning. */
  time_ms = 0;
  /** Events that have happened. */
  events = 0;
  /** The store's clock, and any other's that is nobody's process. */
  readonly clock: Clock = this.clockOf({
    schedule: this.schedule.bind(this),
    jumped_ms: () => this.jumped_ms,
  });
  /** By how much the wall clock of the store is off. */
  jumped_ms = 0;
  readonly #random: () => number;
  readonly #heap: Scheduled[] = [];
  readonly #options: WorldOptions;
  #processes = 0;

  /** The same seed gives the same events in the same order. */
  constructor(readonly seed: number, options: WorldOptions = {}) {
    this.#random = randomStream("world", seed);
    this.#options = options;
  }

  /** True this often. */
  chance(share: number): boolean {
    return this.#random() < share;
  }

  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.#random() * (high - low + 1));
  }

  /** One of the list, each as likely. @throws {RangeError} If it is empty. */
  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new RangeError("Cannot pick from an empty list");
    return list[this.between(0, list.length - 1)]!;
  }

  /** Something that happens later. What is due at one moment happens in any order. */
  schedule(delay_ms: number, what: string, run: () => void): void {
    push(this.#heap, {
      at_ms: this.time_ms + Math.max(0, delay_ms),
      order: this.#random(),
      what,
      run,
    });
  }

  /** A new process, with a new pid and boot. */
  start(name: string): SimulatedProcess {
    return new SimulatedProcess(this, name, ++this.#processes);
  }

  /**
   * Lets everything happen, until nothing is due, `ended` says so, or virtual time is up. True
   * unless time was up.
   */
  async run(
    { ended = () => false, limit_ms = Infinity }: { ended?: () => boolean; limit_ms?: number } = {},
  ): Promise<boolean> {
    await settled();
    while (!ended()) {
      const [next] = this.#heap;
      if (!next) return true;
      if (next.at_ms > limit_ms) return false; // It stays due for the next `run`.
      pop(this.#heap);
      this.time_ms = next.at_ms;
      this.events++;
      this.trace(next.what);
      next.run();
      await settled();
    }
    return true;
  }

  /** Tells `WorldOptions.trace` what happens now. */
  trace(what: string): void {
    this.#options.trace?.(`${this.time_ms.toFixed(0).padStart(8)} ${what}`);
  }

  /** A clock over `schedule`: of the world, or of one process. */
  clockOf({ schedule, jumped_ms, name = "" }: {
    schedule: SimulatedWorld["schedule"];
    jumped_ms: () => number;
    name?: string;
  }): Clock {
    const wait = (ms: number, what: string) =>
      new Promise<void>((resolve) => schedule(ms, `${name} ${what}`, resolve));
    return {
      now: () => EPOCH_MS + this.time_ms + jumped_ms(),
      monotonic: () => this.time_ms,
      turn: () => wait(0, "turns"),
      pause: () => wait(1, "pauses"),
      sleep(ms, signal) {
        if (signal?.aborted) return Promise.reject(signal.reason);
        return new Promise((resolve, reject) => {
          const stop = () => reject(signal!.reason);
          signal?.addEventListener("abort", stop, { once: true });
          schedule(ms, `${name} wakes`, () => {
            signal?.removeEventListener("abort", stop);
            resolve();
          });
        });
      },
    };
  }
}

/**
 * One incarnation of a program. Dead, it hears and does nothing any more; frozen, it hears
 * everything when it thaws.
 */
export class SimulatedProcess {
  /** Its own: what it waits for comes when it thaws, and never once it is dead. */
  readonly clock: Clock;
  /** Who it is to the store. */
  readonly owner: Owner;
  /** By how much its wall clock is off. */
  jumped_ms = 0;
  #state: "alive" | "frozen" | "dead" = "alive";
  #held: { what: string; run: () => void }[] = [];
  #deaths: (() => void)[] = [];

  /** Made by the world, which numbers them. */
  constructor(readonly world: SimulatedWorld, readonly name: string, readonly pid: number) {
    this.clock = world.clockOf({
      schedule: this.schedule.bind(this),
      jumped_ms: () => this.jumped_ms,
      name,
    });
    this.owner = { boot_id: `${name}.${pid}`, host: "simulated", pid, process_start: String(pid) };
  }

  /** Whether it can do and hear anything. */
  get state(): "alive" | "frozen" | "dead" {
    return this.#state;
  }

  /** Something that this process does or hears later. */
  schedule(delay_ms: number, what: string, run: () => void): void {
    this.world.schedule(delay_ms, what, () => this.deliver(what, run));
  }

  /** Now, when it thaws, or never. */
  deliver(what: string, run: () => void): void {
    if (this.#state === "alive") run();
    else if (this.#state === "frozen") this.#held.push({ what, run });
  }

  /** It does and hears nothing until `thaw`. */
  freeze(): void {
    if (this.#state === "alive") this.#state = "frozen";
  }

  /** What it missed comes now, in the order in which it would have. */
  thaw(): void {
    if (this.#state !== "frozen") return;
    this.#state = "alive";
    for (const [place, { what, run }] of this.#held.splice(0).entries()) {
      this.schedule(place / 1e6, what, run);
    }
  }

  /** Ends it at once. Between two events: what it does in one moment it does to the end. */
  kill(): void {
    if (this.#state === "dead") return;
    this.#state = "dead";
    this.#held = [];
    for (const tell of this.#deaths.splice(0)) tell();
  }

  /** Told when it dies: the other ends of its sockets. */
  onDeath(tell: () => void): void {
    if (this.#state === "dead") tell();
    else this.#deaths.push(tell);
  }
}

/**
 * What happens to a call to the store. `lost`: it never arrived. `unanswered`: it was carried out,
 * but the caller sees an error.
 */
export type CallFate = "answered" | "lost" | "unanswered";

type SimulatedStoreOptions = {
  /** One way, milliseconds, both included. */
  latency_ms?: readonly [number, number];
  /**
   * Asked when a call arrives, and (`after`) when it has been carried out: where a process is
   * killed, or a call is lost.
   */
  fate?: (call: keyof Store, moment: "before" | "after") => CallFate;
};

/** What a caller sees of a call that was lost, or whose answer was. */
export class SimulatedOutage extends InfrastructureError {
  constructor(call: string) {
    super(`Cannot tell what became of '${call}' because the store did not answer`, { call });
  }
}

/**
 * A process's connection to a store: calls take time, arrive even if the caller has died meanwhile,
 * and may fail.
 */
export class SimulatedStore implements Store {
  readonly #options: Required<SimulatedStoreOptions>;

  /** One process's connection to `base`, which all processes share. */
  constructor(
    readonly base: Store,
    readonly process: SimulatedProcess,
    options: SimulatedStoreOptions = {},
  ) {
    this.#options = { latency_ms: [0, 3], fate: () => "answered", ...options };
  }

  create: Store["create"] = this.#over("create");
  head: Store["head"] = this.#over("head");
  heads: Store["heads"] = this.#over("heads");
  claim: Store["claim"] = this.#over("claim");
  dequeue: Store["dequeue"] = this.#over("dequeue");
  renew: Store["renew"] = this.#over("renew");
  append: Store["append"] = this.#over("append");
  remove: Store["remove"] = this.#over("remove");
  read: Store["read"] = this.#over("read");
  request: Store["request"] = this.#over("request");
  signal: Store["signal"] = this.#over("signal");
  finish: Store["finish"] = this.#over("finish");
  release: Store["release"] = this.#over("release");
  identity: Store["identity"] = this.#over("identity");
  reopen: Store["reopen"] = this.#over("reopen");
  close: Store["close"] = this.#over("close");

  #over<K extends keyof Store>(call: K): Store[K] {
    // deno-lint-ignore no-explicit-any -- every operation, with its own arguments and answer
    type Operation = (...args: any[]) => any;
    const operation: Operation = (...args) =>
      this.#call(call, () => (this.base[call] as Operation)(...args));
    return operation as Store[K];
  }

  #call<T>(call: keyof Store, carryOut: () => Promise<T>): Promise<T> {
    const { process } = this;
    const { world, name } = process;
    if (process.state === "dead") return new Promise(() => {});
    return new Promise((resolve, reject) => {
      const answer = (run: () => void) =>
        process.schedule(this.#latency(), `${name} < ${call}`, run);
      const fail = () => answer(() => reject(new SimulatedOutage(call)));
      world.schedule(this.#latency(), `${name} > ${call}`, () => {
        if (this.#options.fate(call, "before") === "lost") return fail();
        carryOut().then((value) => {
          if (this.#options.fate(call, "after") === "unanswered") fail();
          else answer(() => resolve(value));
        }, (error) => answer(() => reject(error)));
      });
    });
  }

  #latency(): number {
    const [low, high] = this.#options.latency_ms;
    return this.process.world.between(low, high);
  }
}

/** Every promise that can settle has settled. */
function settled(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

function before(a: Scheduled, b: Scheduled): boolean {
  return a.at_ms !== b.at_ms ? a.at_ms < b.at_ms : a.order < b.order;
}

/** A binary heap: the first due on top. */
function push(heap: Scheduled[], item: Scheduled): void {
  let at = heap.push(item) - 1;
  while (at > 0) {
    const up = (at - 1) >> 1;
    if (!before(item, heap[up]!)) break;
    heap[at] = heap[up]!;
    at = up;
  }
  heap[at] = item;
}

function pop(heap: Scheduled[]): Scheduled | undefined {
  const first = heap[0];
  const last = heap.pop();
  if (heap.length === 0 || !last) return first;
  let at = 0;
  for (let down = 1; down < heap.length; down = 2 * at + 1) {
    if (down + 1 < heap.length && before(heap[down + 1]!, heap[down]!)) down++;
    if (!before(heap[down]!, last)) break;
    heap[at] = heap[down]!;
    at = down;
  }
  heap[at] = last;
  return first;
}
