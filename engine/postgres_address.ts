import { InvalidInputError } from "./errors.ts";

/** Where a PostgreSQL is, as its URL says. What is undefined comes from libpq's environment variables (`PGUSER`, ...). */
export type PostgresAddress = {
  host: string;
  port: number;
  user: string | undefined;
  password: string | undefined;
  database: string | undefined;
  tls: (typeof TLS_MODES)[number];
  /** The schema that holds the tables. */
  schema: string;
  /** For people: the address without the password. */
  text: string;
};

const TLS_MODES = ["disable", "prefer", "require", "verify-full"] as const;
const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/;
const SHAPE = "postgres://USER:PASSWORD@HOST:PORT/DATABASE";

/** @throws {InvalidInputError} Without the URL in it, for that may hold a password. */
export function parsePostgresUrl(text: string): PostgresAddress {
  let url: URL;
  try {
    url = new URL(text);
  } catch { // The message of this error repeats the URL.
    throw refused(`it does not read as ${SHAPE} (special characters in a password are written as %40 for @)`);
  }
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:") {
    throw refused(`it begins with '${url.protocol}': a store is ${SHAPE}`);
  }
  const known = ["host", "schema", "sslmode"];
  const unknown = [...url.searchParams.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined) throw refused(`it has the parameter '${unknown}': there are ${known.join(", ")}`);
  const tls = url.searchParams.get("sslmode") ?? "prefer";
  if (!isTls(tls)) throw refused(`its sslmode is '${tls}': there are ${TLS_MODES.join(", ")}`);
  const schema = url.searchParams.get("schema") ?? "holdfast";
  if (!SCHEMA.test(schema)) throw refused(`its schema is '${schema}': use small letters, digits and _`);
  const given = (part: string) => part === "" ? undefined : decodeURIComponent(part);
  const host = url.searchParams.get("host") ?? given(url.hostname) ?? Deno.env.get("PGHOST") ?? "localhost";
  const port = Number(url.port || Deno.env.get("PGPORT") || 5432);
  const [user, database] = [given(url.username), given(url.pathname.slice(1))];
  const where = `postgres://${user === undefined ? "" : `${user}@`}${host}:${port}/${database ?? ""}`;
  return { host, port, user, password: given(url.password), database, tls, schema, text: where };
}

function isTls(text: string): text is PostgresAddress["tls"] {
  return (TLS_MODES as readonly string[]).includes(text);
}

function refused(why: string): InvalidInputError {
  return new InvalidInputError(`Cannot use the store's URL as ${why}`);
}
