import { EngineError, InfrastructureError, InvalidInputError } from "../errors.ts";

/** A connection that did not answer in time: the request may have been executed. */
export class NoAnswer extends Error {
  readonly code = "NO_ANSWER";
}

/**
 * Codes of the system, the driver (`CONNECTION_...`) and PostgreSQL (appendix A of its manual) that
 * pass with time.
 */
const PASSING = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
  "EAI_AGAIN",
  "ENOENT",
  "NO_ANSWER",
  "CONNECTION_CLOSED",
  "CONNECTION_ENDED",
  "CONNECTION_DESTROYED",
  "CONNECT_TIMEOUT",
  "57P01", // admin_shutdown
  "57P02", // crash_shutdown
  "57P03", // cannot_connect_now: it starts up, shuts down or recovers
  "57P05", // idle_session_timeout
  "53300", // too_many_connections
  "40001", // serialization_failure
  "40P01", // deadlock_detected
]);

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | null)?.code ?? "");
}

/**
 * Whether the server is away or busy, so that the same request may work later. It is then unknown
 * whether it was executed.
 */
export function isPassing(error: unknown): boolean {
  const code = codeOf(error);
  return PASSING.has(code) || code.startsWith("08"); // Class 08: connection exception.
}

/** Whether to report it: two transactions that conflicted are not an outage. */
export function isOutage(error: unknown): boolean {
  return isPassing(error) && !codeOf(error).startsWith("40");
}

/**
 * How TLS libraries reject a server's certificate: OpenSSL's errors as codes, and Node's for a
 * name.
 */
const CERTIFICATE = /CERT|SIGNATURE|ALTNAME/;

type Remedy = { says: string; input?: true };

/** What PostgreSQL or the system says, and the fix. `input`: nothing was started, exit code 2. */
const REMEDIES: Record<string, Remedy> = {
  "53100": { says: "the server's disk is full. Free some space there, then resume" },
  "53200": { says: "the server is out of memory. Give it more, then resume" },
  "25006": { says: "the server accepts no writes: it is a standby. Name the primary" },
  "42501": {
    says: "the user lacks permission for that. Grant it CREATE on the database, or use a " +
      "different user",
    input: true,
  },
  "28P01": {
    says: "the server refuses the password. Fix it in the URL or in PGPASSWORD",
    input: true,
  },
  "28000": {
    says: "the server refuses the user. Fix the URL, or the server's pg_hba.conf",
    input: true,
  },
  "3D000": {
    says: "there is no such database. Create it with createdb, or fix the URL",
    input: true,
  },
  CERTIFICATE: {
    says: "the server's certificate does not prove that it is the host of the URL. Name the " +
      "authority that signed it with sslrootcert, and name the host as the certificate does",
    input: true,
  },
  ENOTFOUND: { says: "there is no host of that name. Fix the URL", input: true },
  "22021": {
    says: "its text has a character that PostgreSQL cannot store (NUL). Remove it",
    input: true,
  },
  "54000": {
    says: "a key is longer than PostgreSQL can index (2,700 bytes). Use shorter ids",
    input: true,
  },
};

/**
 * An error of PostgreSQL or of the connection as an engine error. A server's error means that the
 * statement did nothing.
 */
export function asPostgresError(error: unknown, what: string, where: string): EngineError {
  if (error instanceof EngineError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const code = codeOf(error);
  const { says, input } = REMEDIES[CERTIFICATE.test(code) ? "CERTIFICATE" : code] ??
    { says: "PostgreSQL refuses" };
  const text = `Cannot ${what} in ${where} because ${says}. Nothing recorded is lost (${message})`;
  const facts = { store: where, postgres: code };
  if (input) return new InvalidInputError(text, facts, { cause: error });
  return new InfrastructureError(text, facts, { cause: error, retryable: false });
}

/** The server was away for longer than the caller is willing to wait. */
export function awayTooLong(
  error: unknown,
  { what, where, ms }: { what: string; where: string; ms: number },
): EngineError {
  const message = error instanceof Error ? error.message : String(error);
  return new InfrastructureError(
    `Cannot ${what} in ${where} because PostgreSQL has been away for ${Math.round(ms / 1000)} s (${
      message || codeOf(error)
    }). ` +
      "Nothing recorded is lost: make sure that it runs and can be reached, then resume",
    { store: where, postgres: codeOf(error), away_ms: Math.round(ms) },
    { cause: error, retryable: true },
  );
}
