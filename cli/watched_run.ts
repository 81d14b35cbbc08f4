import {
  type Clock,
  computedStatus,
  type EngineEvent,
  type OwnershipOptions,
  recordedError,
  type RunHead,
} from "../engine/mod.ts";
import { type Home, JournalEvents } from "../runs/mod.ts";
import { recoveryText } from "./display/recovery_text.ts";
import { RunProgress } from "./display/run_progress.ts";

/** What `top` shows of a run. Null: unknown, or there is none. */
export type WatchedFacts = {
  id: string;
  name: string | null;
  status: string | null;
  /** Unfinished, and its engine has died or was cut off from the store. */
  crashed: boolean;
  loop: string | null;
  round: number | null;
  /** The most rounds of the loop. */
  rounds: number | null;
  /** Of the newest rounds, oldest first. */
  rewards: number[];
  tokens_per_second: number | null;
  left_s: number | null;
  /** The last engine that has not let go of it. */
  engine: { pid: number; host: string } | null;
  /** The last recovery or failure. */
  trouble: string | null;
  /** Why the run cannot be read. */
  damaged: string | null;
};

type Watching = OwnershipOptions & { clock: Clock };

/** A run as `top` watches it: it reads the journal's newest rounds once, then only what is new. */
export class WatchedRun {
  readonly #events: JournalEvents;
  readonly #progress: RunProgress;
  readonly #options: Watching;
  /** What the journal had when it was read last. */
  #seen_seq = -1;
  #reading = true;
  #begun = false;
  #trouble: string | null = null;

  constructor(home: Home, { head, ...options }: Watching & { head: RunHead }) {
    this.#options = options;
    this.#events = new JournalEvents(home, head, { stages: ["failure"] });
    this.#progress = new RunProgress(() => this.#now());
  }

  /** Reads what is new in the journal of `head`, which was just read. */
  async facts(head: RunHead): Promise<WatchedFacts> {
    if (head.last_seq > this.#seen_seq) await this.#read();
    this.#seen_seq = head.last_seq;
    const status = computedStatus(head, this.#options);
    const running = status === "running";
    const { loop, rewards } = this.#progress;
    const { pid, host } = head.owner ?? {};
    const error = recordedError(head) as { message: string } | null;
    return {
      id: head.id,
      name: head.name,
      status,
      crashed: status === "interrupted" && head.owner !== null,
      loop: loop?.name ?? null,
      round: loop?.round ?? null,
      rounds: loop === null || loop.times === Infinity ? null : loop.times,
      rewards: [...rewards],
      tokens_per_second: running ? this.#progress.tokensPerSecond() : null,
      left_s: running ? this.#progress.remainingSeconds() : null,
      engine: pid === undefined ? null : { pid, host: host! },
      trouble: error === null ? this.#trouble : firstLine(error.message),
      damaged: null,
    };
  }

  async #read(): Promise<void> {
    const events = this.#begun ? this.#events.next() : this.#events.past();
    this.#reading = true;
    for await (const event of events) {
      this.#progress.on(event);
      this.#trouble = troubleOf(event) ?? this.#trouble;
    }
    this.#reading = false;
    this.#begun = true;
  }

  /** The store's clock may differ from this machine's, but never goes back. */
  #now(): number {
    const { at_ms } = this.#events;
    return this.#reading ? at_ms : Math.max(at_ms, this.#options.clock.now());
  }
}

/** The facts about a run that cannot be read. */
export function damagedFacts(id: string, why: string): WatchedFacts {
  return {
    id,
    name: null,
    status: null,
    crashed: false,
    loop: null,
    round: null,
    rounds: null,
    rewards: [],
    tokens_per_second: null,
    left_s: null,
    engine: null,
    trouble: null,
    damaged: firstLine(why),
  };
}

function troubleOf(event: EngineEvent): string | null {
  if (event.type === "stage_failed") {
    return `${event.key} failed: ${firstLine(event.error.message)}`;
  }
  return event.type === "note" && event.kind === "recovery" ? recoveryText(event.value) : null;
}

function firstLine(message: string): string {
  return message.split("\n", 1)[0]!;
}
