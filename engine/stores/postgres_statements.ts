/** The statements of the PostgreSQL store. Parameters are numbered. */
import { arrayOf, type Value } from "./postgres_link.ts";
import { type Dialect, runLife, UNFINISHED } from "./run_life.ts";
import type { ReadQuery } from "./store.ts";

const CASTS: Record<string, string> = {
  owner: "::text::jsonb",
  lease_ms: "::bigint",
  force: "::boolean",
  kind: "::text",
  seen_epoch: "::bigint",
  ended: "::boolean",
};

/** Parameters whose type PostgreSQL cannot infer are cast. */
const dialect = (now: string): Dialect => ({
  parameters: <N extends string>(...names: N[]) =>
    Object.fromEntries(
      names.map((name, i) => [name, `$${i + 1}${CASTS[name] ?? ""}`]),
    ) as Record<N, string>,
  now,
  json: (text) => `'${text}'::jsonb`,
  hasRequest: (kind) => `requests @> to_jsonb(${kind}::text)`,
  withRequest: (kind) => `requests || to_jsonb(${kind})`,
  owner_boot_id: "owner ->> 'boot_id'",
});

/** `now`: the server's clock in milliseconds, as SQL. */
export function statements(now: string) {
  const { claim, owned, signal, ...steps } = runLife(dialect(now));
  /** A claim is recognised by its token, so it may be sent twice. */
  const set_claimed = `${claim.set}, claimed_by = $8`;
  const claimable = `${claim.where} AND claimed_by IS DISTINCT FROM $8`;
  return {
    create: `WITH new_run AS (
        INSERT INTO runs (id, name, status, epoch, last_seq, entry, graph, graph_hash, config,
          packages, owner, lease_until_ms, requests, error, created_ms, updated_ms, queue, priority,
          needs, parent, made_by, home, journal)
        SELECT $1, $2, 'created', 0, $15, $3, $4, $5, $6, $7, NULL, 0, '[]', NULL, now_ms, now_ms,
          $8, $9, $10::text::jsonb, $11::text::jsonb, $12, $13, $14::integer
        FROM (SELECT ${now} AS now_ms) AS clock
        ON CONFLICT (id) DO NOTHING RETURNING *),
      added AS (
        INSERT INTO journal (run_no, seq, epoch, at_ms, kind, key, input_hash, value)
        SELECT new_run.no, r.seq, 0, new_run.created_ms, r.kind, r.key, r.input_hash, r.value
        FROM new_run, unnest($16::text[], $17::text[], $18::text[], $19::text[])
          WITH ORDINALITY AS r (kind, key, input_hash, value, seq))
      SELECT * FROM new_run`,
    head: `SELECT * FROM runs WHERE id = $1`,
    list: `SELECT * FROM runs ORDER BY no DESC LIMIT $1::bigint`,
    claim: `UPDATE runs SET ${set_claimed} WHERE ${claimable} RETURNING *`,
    unfinished: `SELECT turn, ${now} AS now_ms, runs.* FROM dequeues
      LEFT JOIN runs ON ${UNFINISHED} ORDER BY no`,
    take:
      `WITH mine AS (UPDATE dequeues SET turn = turn + 1 WHERE turn = $9::bigint RETURNING turn),
      taken AS (UPDATE runs SET ${set_claimed} FROM mine WHERE ${claimable} RETURNING runs.*)
      SELECT true AS in_turn, taken.* FROM mine LEFT JOIN taken ON true`,
    remove:
      `WITH head AS (UPDATE runs SET updated_ms = ${now} WHERE ${owned} RETURNING no, last_seq),
      gone AS (DELETE FROM journal USING head WHERE run_no = head.no AND seq = ANY ($3::bigint[]))
      SELECT last_seq FROM head`,
    signal: `WITH head AS (${signal})
      INSERT INTO journal (run_no, seq, epoch, at_ms, kind, key, input_hash, value)
      SELECT no, last_seq, epoch, updated_ms, 'signal', $2, NULL, $3 FROM head`,
    ...steps,
  };
}

/** The rows that a query requests. */
export function selectRows(run: string, query: ReadQuery): { text: string; values: Value[] } {
  const { kinds, prefix, after_seq, limit, newest_first } = query;
  const values: Value[] = [run, limit ?? null];
  const conditions = ["run_no = (SELECT no FROM runs WHERE id = $1)"];
  const parameter = (value: Value) => `$${values.push(value)}`;
  if (kinds) conditions.push(`kind = ANY (${parameter(arrayOf(kinds))}::text[])`);
  // Bytewise order: no key holds that noncharacter.
  if (prefix) {
    conditions.push(`key >= ${parameter(prefix)}`, `key < ${parameter(`${prefix}\u{10FFFF}`)}`);
  }
  if (after_seq !== undefined) conditions.push(`seq > ${parameter(after_seq)}`);
  const text = `SELECT seq, epoch, at_ms, kind, key, input_hash, value FROM journal
    WHERE ${conditions.join(" AND ")} ORDER BY seq ${
    newest_first ? "DESC" : "ASC"
  } LIMIT $2::bigint`;
  return { text, values };
}
