import { InvalidInputError } from "../errors.ts";
import type { PostgresLink } from "./postgres_link.ts";

/** Changes with the tables. */
const SCHEMA_VERSION = 3;
/**
 * Text is ordered by bytes (COLLATE "C"), so that a prefix is a range. A head row changes with
 * every append: it leaves room in its page and stores its long columns separately, so that the
 * change stays small. The journal has no foreign key, because its rows are only inserted from the
 * head that was just updated.
 */
const TABLES = [
  `CREATE TABLE holdfast_schema (version integer NOT NULL, checksum text NOT NULL)`,
  `CREATE TABLE runs (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE,
    name text NOT NULL,
    status text COLLATE "C" NOT NULL, epoch bigint NOT NULL, last_seq bigint NOT NULL,
    entry text NOT NULL, graph text NOT NULL, graph_hash text NOT NULL, config text NOT NULL,
    packages text NOT NULL,
    owner jsonb, lease_until_ms bigint NOT NULL, requests jsonb NOT NULL, error text,
    created_ms bigint NOT NULL, updated_ms bigint NOT NULL,
    queue text, priority double precision NOT NULL, needs jsonb NOT NULL, parent jsonb,
    made_by text NOT NULL, claimed_by text, home text, journal integer NOT NULL
  ) WITH (fillfactor = 40, toast_tuple_target = 256)`,
  `CREATE INDEX runs_unfinished ON runs (no) WHERE status IN ('created', 'running')`,
  `CREATE TABLE journal (
    run_no bigint NOT NULL, seq bigint NOT NULL, epoch bigint NOT NULL, at_ms bigint NOT NULL,
    kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, input_hash text,
    value text NOT NULL
  )`,
  `CREATE UNIQUE INDEX journal_seq ON journal (run_no, seq)`,
  `CREATE INDEX journal_kind ON journal (run_no, kind, seq)`,
  `CREATE INDEX journal_key ON journal (run_no, key, seq)`,
  `CREATE TABLE dequeues (turn bigint NOT NULL)`,
  `INSERT INTO dequeues VALUES (0)`,
  `CREATE TABLE identity (id text NOT NULL, since_ms bigint NOT NULL)`,
  `INSERT INTO identity VALUES (replace(gen_random_uuid()::text, '-', ''),
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint)`,
];

/**
 * Our columns with their types, and our indexes: the text of an index or a type depends on the
 * server.
 */
const CHECKSUM = `(SELECT md5(string_agg(line, E'\\n' ORDER BY line COLLATE "C")) FROM (
    SELECT format('%s.%s %s %s', c.relname, a.attname, format_type(a.atttypid, NULL),
        a.attnotnull) AS line
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
      WHERE c.relnamespace = current_schema::regnamespace AND c.relkind = 'r' AND a.attnum > 0
        AND NOT a.attisdropped
        AND c.relname IN ('runs', 'journal', 'dequeues', 'identity')
    UNION ALL SELECT format('%s on %s', c.relname, t.relname)
      FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
      WHERE t.relnamespace = current_schema::regnamespace
        AND t.relname IN ('runs', 'journal', 'dequeues', 'identity')
  ) AS lines)`;

const FOUND = `SELECT version, checksum, ${CHECKSUM} AS actual FROM holdfast_schema`;
type Found = { version: number; checksum: string; actual: string };

/**
 * Creates the tables in a new database; refuses those of another version of Holdfast, and altered
 * ones.
 */
export async function ensurePostgresSchema(link: PostgresLink): Promise<void> {
  const { where, address: { schema } } = link;
  const before = await recorded(link);
  if (before !== null) return assertOurs(before, link);
  await assertUtf8(link);
  try {
    await link.query(creation(schema));
  } catch (error) {
    if ((error as { code?: string }).code !== "42P07") throw error; // duplicate_table
    throw new InvalidInputError(
      `Cannot use schema '${schema}' in ${where} because another program has tables there: name ` +
        "a different schema with ?schema=NAME",
      { store: where, schema },
    );
  }
}

/** null if there are no tables. */
async function recorded(link: PostgresLink): Promise<Found | null> {
  const { address: { schema } } = link;
  const [there] = await link.query(`SELECT to_regclass($1) IS NOT NULL AS yes`, [
    `"${schema}".holdfast_schema`,
  ]);
  if (!there?.yes) return null;
  const [found] = await link.query<Found>(FOUND);
  return found ?? null;
}

async function assertUtf8(link: PostgresLink): Promise<void> {
  const [row] = await link.query<{ encoding: string }>(
    "SELECT current_setting('server_encoding') AS encoding",
  );
  if (row?.encoding === "UTF8") return;
  throw new InvalidInputError(
    `Cannot use ${link.where} because its encoding is ${row?.encoding}: create one with ` +
      "createdb -E UTF8 -T template0",
    { store: link.where, encoding: row?.encoding },
  );
}

function assertOurs({ version, checksum, actual }: Found, { where }: PostgresLink): void {
  if (version !== SCHEMA_VERSION) {
    throw new InvalidInputError(
      `Cannot use ${where} because its schema is version ${version} and this Holdfast's is ` +
        `${SCHEMA_VERSION}: use the Holdfast that created it, or a different database`,
      { store: where, version, known: SCHEMA_VERSION },
    );
  }
  if (checksum === actual) return;
  throw new InvalidInputError(
    `Cannot use ${where} because its tables are not those of schema version ${version}: ` +
      `checksum is ${actual}, expected ` +
      `${checksum}. Something else has changed them: restore them, or use a different database`,
    { store: where, version, checksum: actual, expected: checksum },
  );
}

/**
 * One transaction. If several processes start at once, the first does the work and the others find
 * it done.
 */
function creation(schema: string): string {
  return `DO $$ BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('holdfast ${schema}', 0));
    IF to_regnamespace('"${schema}"') IS NULL THEN CREATE SCHEMA "${schema}"; END IF;
    IF to_regclass('"${schema}".holdfast_schema') IS NULL THEN
      ${TABLES.map((one) => `EXECUTE $sql$${one}$sql$;`).join("\n")}
      INSERT INTO holdfast_schema VALUES (${SCHEMA_VERSION}, ${CHECKSUM});
    END IF;
  END $$`;
}
