import { InvalidInputError } from "../errors.ts";

/**
 * The address of a PostgreSQL, from its URL. Undefined parts come from libpq's environment
 * variables (`PGUSER`, ...).
 */
export type PostgresAddress = {
  host: string;
  port: number;
  user: string | undefined;
  password: string | undefined;
  database: string | undefined;
  tls: (typeof TLS_MODES)[number];
  /**
   * File with the certificates (PEM) that may sign the server's; null: those that the system
   * trusts. For `verify-full`.
   */
  root_certificates: string | null;
  /** The schema that holds the tables. */
  schema: string;
  /** For people: the address without the password. */
  text: string;
  /** The URL to print, with PASSWORD in place of its password. */
  url: string;
};

const TLS_MODES = ["disable", "prefer", "require", "verify-full"] as const;
/**
 * Modes in which a server, or a machine in the middle, can make password and journal travel as
 * plain text.
 */
const PLAIN: readonly string[] = ["disable", "prefer"];
const PARAMETERS = ["host", "schema", "sslmode", "sslrootcert", "unencrypted"];
const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/;
const SHAPE = "postgres://USER:PASSWORD@HOST:PORT/DATABASE";
const ESCAPES =
  "special characters are written as in URLs: %40 for @, %23 for #, %25 for %, %2F for /, " +
  "%3F for ?";

/**
 * @throws {InvalidInputError} Without the URL in its message, because that may contain a password.
 */
export function parsePostgresUrl(text: string): PostgresAddress {
  const url = parsed(text);
  const unknown = [...url.searchParams.keys()].find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined) {
    throw refused(
      `it has the unknown parameter '${unknown}': the parameters are ` +
        `${PARAMETERS.join(", ")}`,
    );
  }
  const schema = url.searchParams.get("schema") ?? "holdfast";
  if (!SCHEMA.test(schema)) {
    throw refused(`its schema is '${schema}': use small letters, digits and _`);
  }
  const named = url.searchParams.get("host") ?? decoded(url.hostname, "host") ??
    Deno.env.get("PGHOST") ?? "localhost";
  const host = named.replace(/^\[(.*)\]$/, "$1");
  const port = Number(url.port || Deno.env.get("PGPORT") || 5432);
  const user = decoded(url.username, "user");
  const password = decoded(url.password, "password");
  const database = decoded(url.pathname.slice(1), "database");
  const where = `postgres://${user === undefined ? "" : `${user}@`}${named}:${port}/${
    database ?? ""
  }`;
  return {
    host,
    port,
    user,
    password,
    database,
    ...encryption(url.searchParams, host),
    schema,
    text: where,
    url: withoutPassword(url),
  };
}

function withoutPassword({ href }: URL): string {
  const url = new URL(href);
  if (url.password !== "") url.password = "PASSWORD";
  return url.href;
}

function parsed(text: string): URL {
  let url: URL;
  try {
    url = new URL(text);
  } catch { // The message of this error repeats the URL.
    throw refused(`it does not have the form ${SHAPE} (${ESCAPES})`);
  }
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:") {
    throw refused(`it starts with '${url.protocol}': a store is ${SHAPE}`);
  }
  // If a password is not escaped, the text after these characters would be parsed as a different
  // part, and shown.
  const rest = url.pathname.slice(1) + url.search;
  if (text.includes("#") || /^[^?]*\/|@/.test(rest)) {
    throw refused(`it has a character in the wrong place: ${ESCAPES}`);
  }
  return url;
}

function decoded(part: string, name: string): string | undefined {
  try {
    return part === "" ? undefined : decodeURIComponent(part);
  } catch { // The message may repeat the part.
    throw refused(
      `its ${name} has a % that is not followed by two hexadecimal digits: write %25 (${ESCAPES})`,
    );
  }
}

/**
 * Encrypted unless both ends are on this machine, or the user says that the network between them
 * can be trusted.
 */
function encryption(
  parameters: URLSearchParams,
  host: string,
): Pick<PostgresAddress, "tls" | "root_certificates"> {
  const tls = parameters.get("sslmode") ?? (isHere(host) ? "prefer" : "require");
  if (!isTls(tls)) throw refused(`its sslmode is '${tls}': the modes are ${TLS_MODES.join(", ")}`);
  const agreed = parameters.get("unencrypted");
  if (agreed !== null && agreed !== "yes") {
    throw refused(`it has unencrypted=${agreed}: only 'yes' is allowed`);
  }
  if (PLAIN.includes(tls) && !isHere(host) && agreed === null) {
    throw refused(
      `sslmode=${tls} may send the password and the journal to '${host}' as plain text. ` +
        "Fix: sslmode=require or verify-full; if nobody else can use the network between, add " +
        "unencrypted=yes",
    );
  }
  const root_certificates = parameters.get("sslrootcert");
  if (root_certificates !== null && tls !== "verify-full") {
    throw refused(
      `it names sslrootcert, which sslmode=${tls} ignores. Fix: sslmode=verify-full`,
    );
  }
  return { tls, root_certificates };
}

/** A socket in the file system, or an address that packets reach without leaving this machine. */
function isHere(host: string): boolean {
  return host.startsWith("/") || /^(localhost|::1|127(\.\d{1,3}){3})$/i.test(host);
}

function isTls(text: string): text is PostgresAddress["tls"] {
  return (TLS_MODES as readonly string[]).includes(text);
}

function refused(why: string): InvalidInputError {
  return new InvalidInputError(`Cannot use the store's URL because ${why}`);
}
