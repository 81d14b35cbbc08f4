import { EngineError, InvalidInputError } from "../errors.ts";
import { GroupCommit } from "./group_commit.ts";
import { arrayOf, type PostgresLink } from "./postgres_link.ts";
import type { Appended, NewRow } from "./store.ts";

type Append = { rows: NewRow[]; resolve(answer: Appended): void; reject(error: unknown): void };
type Waiting = Append & { run: string; epoch: number };
/**
 * The appends of one run under one epoch that are sent together, and the run's last row before
 * them.
 */
type Group = {
  run: string;
  epoch: number;
  appends: Append[];
  rows: NewRow[];
  last_seq: number | null;
  sent: boolean;
};
type Known = { epoch: number; last_seq: number };

/** Bounds of one statement. */
const ROWS_MAX = 4000;
const CHARS_MAX = 16 * 1024 * 1024;
const RUNS_MAX = 256;
const TURNS_MAX = 100;

/**
 * Appends to PostgreSQL: all waiting appends share one statement, so one round trip and one fsync,
 * regardless of the number of runs. The statement is the fence of the design with one more
 * condition: the run's last row must be the one that this engine knows. So a statement whose answer
 * was lost can be sent again. Whichever of the two comes first, the other changes nothing, and the
 * journal shows whether the rows are there.
 */
export class AppendLane {
  readonly #link: PostgresLink;
  readonly #sql: ReturnType<typeof statements>;
  readonly #known = new Map<string, Known>();
  readonly #group = new GroupCommit<Waiting, Group[]>({
    turn: async () => {}, // What is asked for in the same turn goes along.
    load: (waiting) => this.#load(waiting),
    commit: (groups) => this.#send(groups),
  });

  constructor(link: PostgresLink, now: string) {
    this.#link = link;
    this.#sql = statements(now);
  }

  append(run: string, epoch: number, rows: NewRow[]): Promise<Appended> {
    return new Promise((resolve, reject) => {
      this.#group.add({ run, epoch, rows, resolve, reject });
    });
  }

  /** What a claim or a reopening returned, which saves reading the head. */
  knows(run: string, known: Known): void {
    this.#known.set(run, known);
  }

  forget(run: string): void {
    this.#known.delete(run);
  }

  /** Settles when nothing waits. */
  idle(): Promise<void> {
    return this.#group.idle();
  }

  /** What one statement can carry; a run's appends keep their order. */
  #load(waiting: Waiting[]): { group: Group[]; rest: Waiting[] } {
    const groups = new Map<string, Group>();
    const rest: Waiting[] = [];
    const held = new Set<string>();
    let [count, chars] = [0, 0];
    for (const append of waiting) {
      const { run, epoch, rows } = append;
      const group = groups.get(run);
      const size = rows.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
      const fits = count === 0 || (count + rows.length <= ROWS_MAX && chars + size <= CHARS_MAX);
      if (held.has(run) || !fits || (group ? group.epoch !== epoch : groups.size >= RUNS_MAX)) {
        held.add(run);
        rest.push(append);
        continue;
      }
      [count, chars] = [count + rows.length, chars + size];
      if (group) {
        group.appends.push(append);
        group.rows = group.rows.concat(rows);
        continue;
      }
      const known = this.#known.get(run);
      const last_seq = known?.epoch === epoch ? known.last_seq : null;
      groups.set(run, { run, epoch, appends: [append], rows, last_seq, sent: false });
    }
    return { group: [...groups.values()], rest };
  }

  /** Settles every append of the groups, whatever happens. */
  async #send(groups: Group[]): Promise<void> {
    const open = new Set(groups);
    const what = groups.length === 1
      ? `append ${groups[0]!.rows.length} rows to run '${groups[0]!.run}'`
      : `append rows to ${groups.length} runs`;
    try {
      await this.#link.patiently(what, (again) => this.#attempt(open, again));
    } catch (error) {
      const away = error instanceof EngineError && error.retryable;
      if (open.size === 1 || away) return this.#refuse(open, error);
      // One bad row must not fail the others.
      for (const group of open) await this.#send([group]);
    }
  }

  async #attempt(open: Set<Group>, again: boolean): Promise<void> {
    let unsure = again || [...open].some(({ last_seq }) => last_seq === null);
    for (let turn = 0; open.size > 0; turn++) {
      if (unsure) await this.#look(open);
      if (open.size === 0) return;
      if (turn > TURNS_MAX) {
        throw new Error(
          "the last row of the run changes each time: does anything else append " +
            "to it?",
        );
      }
      const groups = [...open];
      for (const group of groups) group.sent = true;
      const done = await this.#insert(groups);
      for (const group of groups) {
        if (done.has(group.run)) this.#settle(open, group);
      }
      // What the statement left out is fenced, or its last row differs: the head says which.
      unsure = true;
    }
  }

  /** The runs whose rows are durable now. */
  async #insert(groups: Group[]): Promise<Set<string>> {
    const [first] = groups;
    const { one, many } = this.#sql;
    if (groups.length === 1 && first!.rows.length === 1) {
      const { run, epoch, last_seq, rows: [row] } = first!;
      const { kind, key, input_hash, value } = row!;
      const found = await this.#link.query(one, [
        run,
        epoch,
        last_seq,
        kind,
        key,
        input_hash ?? null,
        value,
      ]);
      return new Set(found.length === 1 ? [run] : []);
    }
    const rows = groups.flatMap((group) =>
      group.rows.map((row, i) => ({ ...row, group, seq: group.last_seq! + 1 + i }))
    );
    const found = await this.#link.query<{ id: string }>(many, [
      arrayOf(groups.map(({ run }) => run)),
      arrayOf(groups.map(({ epoch }) => epoch)),
      arrayOf(groups.map(({ last_seq }) => last_seq)),
      arrayOf(groups.map((group) => group.rows.length)),
      arrayOf(rows.map(({ group }) => group.run)),
      arrayOf(rows.map(({ seq }) => seq)),
      arrayOf(rows.map(({ kind }) => kind)),
      arrayOf(rows.map(({ key }) => key)),
      arrayOf(rows.map(({ input_hash }) => input_hash ?? null)),
      arrayOf(rows.map(({ value }) => value)),
    ]);
    return new Set(found.map(({ id }) => id));
  }

  /** Settles the groups whose fate the database shows, and learns the last row of the others. */
  async #look(open: Set<Group>): Promise<void> {
    const heads = await this.#link.query<
      { id: string; epoch: number; last_seq: number; owned: boolean }
    >(
      this.#sql.heads,
      [arrayOf([...open].map(({ run }) => run))],
    );
    const found = new Map(heads.map((head) => [head.id, head]));
    for (const group of [...open]) {
      const head = found.get(group.run);
      if (!head) {
        this.#refuse(new Set([group]), noSuchRun(group.run, this.#link.where));
        open.delete(group);
      } else if (group.sent && head.last_seq > group.last_seq! && await this.#isThere(group)) {
        this.#settle(open, group);
      } else if (head.epoch !== group.epoch || !head.owned) this.#fence(open, group);
      else group.last_seq = head.last_seq;
    }
  }

  /**
   * Whether the rows of a statement whose answer was lost are in the journal: the same rows, of
   * this epoch, in place.
   */
  async #isThere({ run, epoch, last_seq, rows }: Group): Promise<boolean> {
    const found = await this.#link.query<NewRow>(this.#sql.rows, [
      run,
      epoch,
      last_seq,
      last_seq! + rows.length,
    ]);
    return rows.length > 0 && found.length === rows.length && found.every((row, i) => {
      const { kind, key, input_hash, value } = rows[i]!;
      return row.kind === kind && row.key === key && row.input_hash === (input_hash ?? null) &&
        row.value === value;
    });
  }

  #settle(open: Set<Group>, group: Group): void {
    let last_seq = group.last_seq!;
    for (const append of group.appends) {
      last_seq += append.rows.length;
      append.resolve({ fenced: false, last_seq });
    }
    this.#known.set(group.run, { epoch: group.epoch, last_seq });
    open.delete(group);
  }

  #fence(open: Set<Group>, group: Group): void {
    this.#known.delete(group.run);
    for (const append of group.appends) append.resolve({ fenced: true });
    open.delete(group);
  }

  #refuse(groups: Set<Group>, error: unknown): void {
    for (const { run, appends } of groups) {
      this.#known.delete(run);
      for (const append of appends) append.reject(error);
    }
  }
}

export function noSuchRun(run: string, where: string): InvalidInputError {
  return new InvalidInputError(
    `Cannot find run '${run}' in ${where}: 'runs' lists those that are there`,
    { run },
  );
}

/** `one`: a single row of a single run, which a chain of steps sends. `many`: everything else. */
function statements(now: string) {
  return {
    one: `WITH head AS (
        UPDATE runs SET last_seq = last_seq + 1, updated_ms = ${now}
        WHERE id = $1 AND epoch = $2 AND last_seq = $3 AND owner IS NOT NULL
        RETURNING no, last_seq, updated_ms)
      INSERT INTO journal (run_no, seq, epoch, at_ms, kind, key, input_hash, value)
      SELECT no, last_seq, $2, updated_ms, $4, $5, $6, $7 FROM head RETURNING seq`,
    many: `WITH wanted AS (
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::int[])
          AS w (id, epoch, last_seq, rows)),
      head AS (
        UPDATE runs SET last_seq = runs.last_seq + w.rows, updated_ms = ${now} FROM wanted w
        WHERE runs.id = w.id AND runs.epoch = w.epoch AND runs.last_seq = w.last_seq
          AND runs.owner IS NOT NULL
        RETURNING runs.no, runs.id, runs.epoch, runs.updated_ms),
      added AS (
        INSERT INTO journal (run_no, seq, epoch, at_ms, kind, key, input_hash, value)
        SELECT head.no, r.seq, head.epoch, head.updated_ms, r.kind, r.key, r.input_hash, r.value
        FROM unnest($5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[], $10::text[])
          AS r (run, seq, kind, key, input_hash, value)
        JOIN head ON head.id = r.run)
      SELECT id FROM head`,
    heads: "SELECT id, epoch, last_seq, owner IS NOT NULL AS owned FROM runs WHERE id = ANY " +
      "($1::text[])",
    rows: `SELECT kind, key, input_hash, value FROM journal
      WHERE run_no = (SELECT no FROM runs WHERE id = $1) AND epoch = $2 AND seq > $3 AND seq <= $4
        ORDER BY seq`,
  };
}
