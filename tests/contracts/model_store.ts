/**
 * What a store must answer and hold, written a second time and simply: the drivers are compared
 * with it.
 */
import {
  type Appended,
  checkRunId,
  type Claimed,
  type ClaimOptions,
  type Clock,
  type DequeueOptions,
  type FinalStatus,
  InvalidInputError,
  JOURNAL_VERSION,
  type JournalRow,
  type NewRow,
  type NewRun,
  type Owner,
  type ReadQuery,
  type RequestKind,
  type RunHead,
  type Store,
  type StoreIdentity,
} from "../../engine/mod.ts";

/** Keeps everything in memory, as deep copies. */
export class ModelStore implements Store {
  readonly #identity: StoreIdentity;
  readonly #heads = new Map<string, RunHead>();
  readonly #journals = new Map<string, JournalRow[]>();

  constructor(readonly clock: Clock) {
    this.#identity = { id: crypto.randomUUID(), since_ms: clock.now() };
  }

  create(run: NewRun, rows: NewRow[] = []): Promise<RunHead> {
    return this.#done(() => {
      if (this.#heads.has(checkRunId(run.id))) {
        throw new InvalidInputError(
          `Cannot create run '${run.id}' because it already exists`,
          { run: run.id },
        );
      }
      const now = this.clock.now();
      const none = {
        epoch: 0,
        last_seq: rows.length,
        owner: null,
        lease_until_ms: 0,
        requests: [],
        error: null,
      };
      const usual = {
        queue: null,
        priority: 0,
        needs: {},
        parent: null,
        home: null,
        journal: JOURNAL_VERSION,
      };
      const head: RunHead = {
        ...usual,
        ...run,
        status: "created",
        ...none,
        created_ms: now,
        updated_ms: now,
      };
      this.#heads.set(run.id, head);
      this.#journals.set(
        run.id,
        rows.map((row, i) => ({ ...row, seq: i + 1, epoch: 0, at_ms: now })),
      );
      return structuredClone(head);
    });
  }

  identity(): Promise<StoreIdentity> {
    return this.#done(() => ({ ...this.#identity }));
  }

  head(run: string): Promise<RunHead | null> {
    return this.#done(() => structuredClone(this.#heads.get(checkRunId(run)) ?? null));
  }

  heads({ limit = Infinity }: { limit?: number } = {}): Promise<RunHead[]> {
    return this.#done(() => structuredClone([...this.#heads.values()].reverse().slice(0, limit)));
  }

  claim(run: string, owner: Owner, options: ClaimOptions): Promise<Claimed> {
    return this.#done(() => this.#claim(checkRunId(run), owner, options));
  }

  dequeue(owner: Owner, { lease_ms, choose }: DequeueOptions): Promise<RunHead | null> {
    return this.#done(() => {
      const open = [...this.#heads.values()].filter(({ status }) =>
        status === "created" || status === "running"
      );
      const chosen = choose(structuredClone(open), this.clock.now());
      if (chosen === null) return null;
      const { claimed, head } = this.#claim(chosen.run, owner, { lease_ms, force: chosen.force });
      return claimed ? head : null;
    });
  }

  #claim(
    run: string,
    owner: Owner,
    { lease_ms, force, seen_epoch, ended = false }: ClaimOptions,
  ): Claimed {
    const head = this.#known(run);
    const others = head.owner !== null && head.owner.boot_id !== owner.boot_id;
    const held = others && head.lease_until_ms > this.clock.now() && !force;
    const over = isOver(head) && !ended;
    const late = seen_epoch !== undefined && seen_epoch !== head.epoch;
    const foreign = head.journal !== JOURNAL_VERSION;
    if (held || over || late || foreign) return { claimed: false, head: structuredClone(head) };
    head.requests = head.requests.filter((kind) => kind !== "drain");
    if (head.status === "created") head.status = "running";
    const claimed = { owner, epoch: head.epoch + 1, lease_until_ms: this.clock.now() + lease_ms };
    Object.assign(head, claimed);
    return { claimed: true, head: structuredClone(head) };
  }

  renew(run: string, epoch: number, lease_ms: number): ReturnType<Store["renew"]> {
    return this.#done(() => {
      const head = this.#owned(run, epoch);
      if (!head) return { fenced: true as const };
      head.lease_until_ms = this.clock.now() + lease_ms;
      return { fenced: false as const, requests: [...head.requests] };
    });
  }

  append(run: string, epoch: number, rows: NewRow[]): Promise<Appended> {
    return this.#done((): Appended => {
      const head = this.#owned(run, epoch);
      if (!head) return { fenced: true };
      const at_ms = this.clock.now();
      const journal = this.#journals.get(run)!;
      const added = rows.map((row) => ({ ...row, seq: ++head.last_seq, epoch, at_ms }));
      journal.push(...added);
      return { fenced: false, last_seq: head.last_seq };
    });
  }

  remove(run: string, epoch: number, seqs: number[]): Promise<Appended> {
    return this.#done((): Appended => {
      const head = this.#owned(run, epoch);
      if (!head) return { fenced: true };
      const gone = new Set(seqs);
      this.#journals.set(run, (this.#journals.get(run) ?? []).filter(({ seq }) => !gone.has(seq)));
      return { fenced: false, last_seq: head.last_seq };
    });
  }

  read(run: string, query: ReadQuery = {}): Promise<JournalRow[]> {
    return this.#done(() => {
      const { kinds, prefix = "", after_seq = 0, limit = Infinity, newest_first } = query;
      const found = (this.#journals.get(run) ?? []).filter((row) =>
        row.seq > after_seq && row.key.startsWith(prefix) && (!kinds || kinds.includes(row.kind))
      );
      return (newest_first ? found.reverse() : found).slice(0, limit).map((row) => ({ ...row }));
    });
  }

  request(run: string, kind: RequestKind): Promise<RunHead> {
    return this.#done(() => {
      checkRunId(run);
      const head = this.#known(run);
      const open = head.status === "created" || head.status === "running";
      if (open && head.owner === null && kind === "cancel") head.status = "cancelled";
      else if (!isOver(head) && head.owner !== null && !head.requests.includes(kind)) {
        head.requests.push(kind);
      }
      return structuredClone(head);
    });
  }

  signal(run: string, name: string, value: string): Promise<RunHead> {
    return this.#done(() => {
      const head = this.#known(run);
      const isSent = (this.#journals.get(run) ?? []).some(({ kind, key }) =>
        kind === "signal" && key === name
      );
      if (!isOver(head) && !isSent) {
        const row = { kind: "signal" as const, key: name, value };
        const { epoch } = head;
        this.#journals.get(run)!.push({
          ...row,
          seq: ++head.last_seq,
          epoch,
          at_ms: this.clock.now(),
        });
      }
      return structuredClone(head);
    });
  }

  finish(
    run: string,
    epoch: number,
    status: FinalStatus,
    error?: string,
  ): ReturnType<Store["finish"]> {
    return this.#done(() => {
      const head = this.#owned(run, epoch);
      if (!head || isOver(head)) return this.#endedAs(run, epoch);
      head.status = head.requests.includes("cancel") ? "cancelled" : status;
      head.error = head.status === "failed" ? error ?? null : null;
      Object.assign(head, { owner: null, lease_until_ms: 0, requests: [] });
      return { fenced: false as const, status: head.status };
    });
  }

  #endedAs(run: string, epoch: number): Awaited<ReturnType<Store["finish"]>> {
    const { epoch: current, status } = this.#known(run);
    if (current !== epoch || status === "created" || status === "running") return { fenced: true };
    return { fenced: false, status };
  }

  release(run: string, epoch: number): Promise<void> {
    return this.#done(() => {
      const head = this.#owned(run, epoch);
      if (!head) return;
      if (head.requests.includes("cancel") && head.status !== "done") head.status = "cancelled";
      Object.assign(head, { owner: null, lease_until_ms: 0, requests: [] });
    });
  }

  reopen(run: string, epoch: number): Promise<Appended> {
    return this.#done((): Appended => {
      const head = this.#owned(run, epoch);
      if (!head || isOver(head)) return { fenced: true };
      Object.assign(head, { status: "running", error: null });
      return { fenced: false, last_seq: head.last_seq };
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #known(run: string): RunHead {
    const head = this.#heads.get(run);
    if (!head) {
      throw new InvalidInputError(`Cannot find run '${run}' because there is no such run`, {
        run,
      });
    }
    return head;
  }

  #owned(run: string, epoch: number): RunHead | undefined {
    const head = this.#known(run);
    return head.epoch === epoch && head.owner !== null ? head : undefined;
  }

  // deno-lint-ignore require-await -- async, so that every error is a rejection
  async #done<T>(body: () => T): Promise<T> {
    return body();
  }
}

/** Ended permanently: a failed run can be opened again. */
function isOver({ status }: RunHead): boolean {
  return status === "done" || status === "cancelled";
}
