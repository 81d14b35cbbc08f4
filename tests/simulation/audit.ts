/**
 * What must hold in every history: seen at the store, which everybody must pass, and counted where
 * bodies start.
 */
import {
  attemptsFor,
  type Cause,
  type JournalRow,
  type NewRow,
  type Owner,
  type RunHead,
  type Store,
} from "../../engine/mod.ts";
import type { MemoryStore, SimulatedWorld } from "../../testing/mod.ts";
import { ATTEMPTS_MAX } from "./workload.ts";

/**
 * An engine that asked whose the run is may act on the answer for so long: the answer is on its way
 * to it.
 */
const LOOK_MS = 200;

/**
 * Who holds the run, and until when if no sign of life comes. By the world's own time, which does
 * not jump.
 */
type Held = { boot: string; until_ms: number };

export class Audit {
  readonly violations: string[] = [];
  readonly starts = new Map<string, number>();
  /** How often each operation was begun on a worker. */
  readonly operations = new Map<string, number>();
  /** The boot that claimed each epoch. */
  readonly #epochs = new Map<number, string>();
  /** When each boot asked last whose the run is. */
  readonly #looks = new Map<string, number>();
  readonly #frozen = new Set<string>();
  /** Keys with a durable result. */
  readonly #completed = new Set<string>();
  #epoch = 0;
  #held: Held | null = null;

  constructor(readonly world: SimulatedWorld, readonly store: MemoryStore, readonly run: string) {}

  /** The shared store, as one process uses it. */
  over(owner: Owner): Store {
    return new Proxy(this.store as Store, {
      get: (store, call: keyof Store) => async (...args: unknown[]) => {
        const answer = await (store[call] as (...args: unknown[]) => Promise<unknown>).apply(
          store,
          args,
        );
        this.#saw(call, { owner, args, answer });
        return answer;
      },
    });
  }

  /** A body or a step's function starts. */
  started({ key, epoch }: { key: string; epoch: number }): number {
    const count = (this.starts.get(key) ?? 0) + 1;
    this.starts.set(key, count);
    // One that was superseded without knowing it may start a body: its row is refused.
    const completed = epoch === this.#epoch && this.#completed.has(key);
    if (completed) this.#violated(`'${key}' started again although it is completed`);
    return count;
  }

  /**
   * An engine ends an agent: one that was superseded before it last asked whose the run is must
   * not.
   */
  destroys(boot: string): void {
    const superseded = this.#epochs.get(this.#epoch) !== boot;
    const knew = this.world.time_ms - (this.#looks.get(boot) ?? 0) > LOOK_MS;
    if (superseded && knew && !this.#frozen.has(boot)) {
      this.#violated(`${boot} ended an agent although it was superseded, and had not asked`);
    }
  }

  /** It does what it had decided on before, however late. */
  froze(boot: string): void {
    this.#frozen.add(boot);
  }

  /** An operation begins on a worker. */
  began(host: string, { group, key }: { group: string; key: string }, args: unknown): void {
    const name = `${host} ${group} ${key} ${JSON.stringify(args)}`;
    this.operations.set(name, (this.operations.get(name) ?? 0) + 1);
  }

  /**
   * Where workers were not touched, an engine that dies or freezes costs no operation: the next one
   * takes up what was begun.
   */
  checkAdopted(): void {
    for (const [name, count] of this.operations) {
      if (count > 1) {
        this.#violated(`operation '${name}' was begun ${count} times although no worker was lost`);
      }
    }
  }

  #saw(
    call: keyof Store,
    { owner, args, answer }: { owner: Owner; args: unknown[]; answer: unknown },
  ): void {
    if (call === "claim") {
      const { claimed, head } = answer as { claimed: boolean; head: RunHead };
      if (claimed) {
        this.#claimed(owner.boot_id, {
          head,
          lease_ms: (args[2] as { lease_ms: number }).lease_ms,
        });
      }
      return;
    }
    if (call === "head") this.#looks.set(owner.boot_id, this.world.time_ms);
    if (call === "release" && args[1] === this.#epoch) this.#held = null;
    const fenced = (answer as { fenced?: boolean } | undefined)?.fenced;
    if (fenced !== false) return;
    if (call === "append") {
      for (const { kind, key } of args[2] as NewRow[]) {
        if (kind === "result") this.#completed.add(key);
      }
    }
    const epoch = args[1] as number;
    const rightful = epoch === this.#epoch && this.#epochs.get(epoch) === owner.boot_id;
    if (!rightful) {
      this.#violated(`${owner.boot_id} wrote '${call}' as epoch ${epoch}, which is not its own`);
    }
    if (call === "renew") {
      this.#held = { boot: owner.boot_id, until_ms: this.world.time_ms + (args[2] as number) };
    }
    if (call === "finish") this.#held = null;
  }

  #claimed(boot: string, { head, lease_ms }: { head: RunHead; lease_ms: number }): void {
    if (head.epoch <= this.#epoch) {
      this.#violated(`epoch ${head.epoch} came after epoch ${this.#epoch}`);
    }
    const held = this.#held;
    if (held && held.boot !== boot && held.until_ms > this.world.time_ms) {
      this.#violated(
        `${boot} took the run from ${held.boot}, whose lease had ${
          held.until_ms - this.world.time_ms
        } ms left`,
      );
    }
    this.#epoch = head.epoch;
    this.#epochs.set(head.epoch, boot);
    this.#held = { boot, until_ms: this.world.time_ms + lease_ms };
  }

  #violated(what: string): void {
    this.world.trace(`VIOLATION ${what}`);
    this.violations.push(what);
  }

  /** What the journal itself must say, whatever happened. */
  checkJournal(): void {
    const rows = this.store.rows(this.run);
    const results = new Set<string>();
    let epoch = 0;
    for (const row of rows) {
      if (row.epoch < epoch) {
        this.#violated(`row ${row.seq} of epoch ${row.epoch} came after epoch ${epoch}`);
      }
      epoch = row.epoch;
      // Whoever gives a signal claims nothing: one that came before the first claim has no owner's
      // epoch.
      const isEarly = row.kind === "signal" && epoch === 0;
      if (!this.#epochs.has(epoch) && !isEarly) {
        this.#violated(`row ${row.seq} has epoch ${epoch}, which nobody claimed`);
      }
      if (row.kind !== "result" && row.kind !== "round") continue;
      const name = `${row.kind} ${row.key}`;
      if (results.has(name)) this.#violated(`there are two rows '${name}'`);
      results.add(name);
    }
    this.#checkBudgets(rows);
  }

  #checkBudgets(rows: readonly JournalRow[]): void {
    const failures = new Map<string, number>();
    for (const row of rows.filter(({ kind }) => kind === "failure")) {
      const { cause_kind } = (JSON.parse(row.value) as { error: { cause_kind: Cause } }).error;
      const name = `${row.key} ${cause_kind}`;
      failures.set(name, (failures.get(name) ?? 0) + 1);
      const max = attemptsFor({ attempts_max: ATTEMPTS_MAX }, cause_kind);
      if (cause_kind !== "timeout" && failures.get(name)! > max) {
        this.#violated(`'${row.key}' failed more than ${max} times`);
      }
    }
  }
}

/** What a run comes to: outputs, counts and rounds, without what time and chance put in. */
export function digestOf(rows: readonly JournalRow[]): Record<string, unknown> {
  const digest: Record<string, unknown> = {};
  for (const row of rows) {
    const value = JSON.parse(row.value);
    if (row.kind === "result" && !/\/(now|sleep)#/.test(row.key)) {
      digest[`result ${row.key}`] = { output: value.output, tally: value.tally ?? null };
    } else if (row.kind === "round") {
      const { open_after_seq: _, ...rest } = value;
      digest[`round ${row.key}`] = rest;
    } else if (row.kind === "note/worked" || row.kind === "note/output") {
      digest[`${row.kind} ${row.key}`] = value;
    }
  }
  return Object.fromEntries(Object.entries(digest).sort(([a], [b]) => a < b ? -1 : 1));
}
