/** What the SQLite store says to the database, each in one statement. */

export const INSERT_RUN =
  `INSERT INTO runs (id, name, status, epoch, last_seq, entry, graph, graph_hash, config, packages,
    owner, lease_until_ms, requests, error, created_ms, updated_ms, queue, priority, needs, parent, home, journal)
  VALUES (:id, :name, 'created', 0, :last_seq, :entry, :graph, :graph_hash, :config, :packages, NULL, 0, '[]', NULL, :now, :now,
    :queue, :priority, :needs, :parent, :home, :journal)
  ON CONFLICT (id) DO NOTHING RETURNING *`;

const HAS_CANCEL = `EXISTS (SELECT 1 FROM json_each(requests) WHERE value = 'cancel')`;
/** Requests as they pass to the next owner: a drain was meant for the old one. */
const WITHOUT_DRAIN = `CASE WHEN ${HAS_CANCEL} THEN '["cancel"]' ELSE '[]' END`;
export const UNFINISHED = `status IN ('created', 'running')`;
/**
 * The fence. A finished or released run has no owner, so that nobody appends to it under the old
 * epoch.
 */
const OWNED = `id = :run AND epoch = :epoch AND owner IS NOT NULL`;

export const CLAIM =
  `UPDATE runs SET epoch = epoch + 1, owner = :owner, lease_until_ms = :now + :lease, updated_ms = :now,
    status = CASE status WHEN 'created' THEN 'running' ELSE status END, requests = ${WITHOUT_DRAIN}, journal = :journal
  WHERE id = :run AND journal <= :journal AND (status NOT IN ('done', 'cancelled') OR :ended) AND epoch = coalesce(:seen_epoch, epoch)
    AND (owner IS NULL OR lease_until_ms <= :now OR :force OR json_extract(owner, '$.boot_id') = :boot_id)
  RETURNING *`;
export const RENEW = `UPDATE runs SET lease_until_ms = :now + :lease WHERE ${OWNED} RETURNING requests`;
export const ADVANCE =
  `UPDATE runs SET last_seq = last_seq + :count, updated_ms = :now WHERE ${OWNED} RETURNING no, last_seq`;
export const ADVANCE_TO_SIGNAL = `UPDATE runs SET last_seq = last_seq + 1, updated_ms = :now
  WHERE id = :run AND status NOT IN ('done', 'cancelled') AND NOT EXISTS (
    SELECT 1 FROM journal WHERE run_no = runs.no AND kind = 'signal' AND key = :name) RETURNING no, epoch, last_seq`;
export const INSERT_ROW = `INSERT INTO journal (run_no, seq, epoch, at_ms, kind, key, input_hash, value)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
export const REMOVE = `DELETE FROM journal WHERE run_no = :no AND seq IN (SELECT value FROM json_each(:seqs))`;
export const REQUEST = `UPDATE runs SET updated_ms = :now,
    status = CASE WHEN owner IS NULL THEN 'cancelled' ELSE status END,
    requests = CASE WHEN owner IS NULL OR EXISTS (SELECT 1 FROM json_each(requests) WHERE value = :kind) THEN requests
      ELSE json_insert(requests, '$[#]', :kind) END
  WHERE id = :run AND status NOT IN ('done', 'cancelled')
    AND ((${UNFINISHED} AND :kind = 'cancel') OR owner IS NOT NULL)`;
export const FINISH = `UPDATE runs SET status = CASE WHEN ${HAS_CANCEL} THEN 'cancelled' ELSE :status END,
    error = CASE WHEN ${HAS_CANCEL} OR :status <> 'failed' THEN NULL ELSE :error END, owner = NULL, lease_until_ms = 0, requests = '[]', updated_ms = :now
  WHERE ${OWNED} AND status NOT IN ('done', 'cancelled') RETURNING status`;
export const RELEASE = `UPDATE runs SET owner = NULL, lease_until_ms = 0, requests = '[]', updated_ms = :now,
    status = CASE WHEN ${HAS_CANCEL} AND status <> 'done' THEN 'cancelled' ELSE status END
  WHERE ${OWNED}`;
export const REOPEN = `UPDATE runs SET status = 'running', error = NULL, updated_ms = :now
  WHERE ${OWNED} AND status NOT IN ('done', 'cancelled') RETURNING last_seq`;
