/** The statements of the SQLite store. Parameters are named. */
import { type Dialect, runLife, UNFINISHED as IS_UNFINISHED } from "./run_life.ts";

const DIALECT: Dialect = {
  parameters: <N extends string>(...names: N[]) =>
    Object.fromEntries(names.map((name) => [name, `:${name}`])) as Record<N, string>,
  now: ":now",
  json: (text) => `'${text}'`,
  hasRequest: (kind) => `EXISTS (SELECT 1 FROM json_each(requests) WHERE value = ${kind})`,
  withRequest: (kind) => `json_insert(requests, '$[#]', ${kind})`,
  owner_boot_id: "json_extract(owner, '$.boot_id')",
};
const { claim, owned, signal, renew, request, finish, release, reopen } = runLife(DIALECT);

export const INSERT_RUN =
  `INSERT INTO runs (id, name, status, epoch, last_seq, entry, graph, graph_hash, config, packages,
    owner, lease_until_ms, requests, error, created_ms, updated_ms, queue, priority, needs,
    parent, home, journal)
  VALUES (:id, :name, 'created', 0, :last_seq, :entry, :graph, :graph_hash, :config, :packages,
    NULL, 0, '[]', NULL, :now, :now, :queue, :priority, :needs, :parent, :home, :journal)
  ON CONFLICT (id) DO NOTHING RETURNING *`;

export const ALL_UNFINISHED = `SELECT * FROM runs WHERE ${IS_UNFINISHED} ORDER BY no`;
export const CLAIM = `UPDATE runs SET ${claim.set} WHERE ${claim.where} RETURNING *`;
export const ADVANCE = `UPDATE runs SET last_seq = last_seq + :count, updated_ms = :now
  WHERE ${owned} RETURNING no, last_seq`;
export const INSERT_ROW = `INSERT INTO journal
  (run_no, seq, epoch, at_ms, kind, key, input_hash, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
export const REMOVE = `DELETE FROM journal
  WHERE run_no = :no AND seq IN (SELECT value FROM json_each(:seqs))`;
export {
  finish as FINISH,
  release as RELEASE,
  renew as RENEW,
  reopen as REOPEN,
  request as REQUEST,
  signal as ADVANCE_TO_SIGNAL,
};
