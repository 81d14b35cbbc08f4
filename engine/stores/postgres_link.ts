import { Socket } from "node:net";
import postgres from "postgres";
import { type Clock, systemClock } from "../clock.ts";
import { InvalidInputError } from "../errors.ts";
import { parsePostgresUrl, type PostgresAddress } from "./postgres_address.ts";
import { asPostgresError, awayTooLong, isOutage, isPassing, NoAnswer } from "./postgres_errors.ts";

export type PostgresOptions = {
  /** How long an operation waits for a server that is away before it fails. */
  patience_ms?: number;
  /** How long one statement may take before its connection counts as lost. */
  answer_ms?: number;
  /** The maximum number of connections; they are opened on demand. */
  connections_max?: number;
  clock?: Clock;
  /** Called once when the server goes away and once when it is back. */
  onNotice?: (text: string) => void;
  /** For tests: an SQL expression that replaces the database's clock, in milliseconds. */
  now_sql?: string;
};

/** Parameters of a statement: text[] and bigint[] are sent in the form of `textArray()`. */
export type Value = string | number | boolean | null;
export type Row = Record<string, unknown>;

/** The answer of a server without TLS to a request for it: `N`. */
const NO_TLS = 78;
const BACKOFF_MS = { first: 20, most: 1000 };
/** Bigints of this schema are counts and milliseconds, below 2^53. */
const BIGINT = { to: 20, from: [20], serialize: String, parse: Number };
/**
 * Explicit, regardless of the role's or the database's settings: an answer means that the row is on
 * the disk. The fence relies on READ COMMITTED: an UPDATE that waited for a lock checks its
 * condition again.
 */
const SETTINGS = {
  application_name: "holdfast",
  synchronous_commit: "on",
  default_transaction_isolation: "read committed",
};

/**
 * One TCP connection, used until its first error. The driver could connect again by itself, but
 * then a statement written between an error and the close of the socket gets the answer of a later
 * one.
 * @internal
 */
class Connection {
  in_flight = 0;
  lost = false;
  readonly #sql: postgres.Sql<Record<string, unknown>>;
  readonly #answer_ms: number;
  readonly #where: string;
  #socket: Socket | undefined;
  #watch: ReturnType<typeof setTimeout> | undefined;
  /** When the last statement was sent or answered. */
  #heard_ms = 0;
  #silent = false;
  /** The server has no TLS, which the address requires. */
  #plain = false;

  constructor(address: PostgresAddress, { answer_ms }: { answer_ms: number }) {
    this.#answer_ms = answer_ms;
    this.#where = address.text;
    const { host, port, user, password, database, schema } = address;
    this.#sql = postgres({
      host,
      port,
      max: 1,
      max_lifetime: null,
      idle_timeout: 0,
      fetch_types: false,
      backoff: false,
      user,
      password,
      database,
      ssl: encryption(address),
      connection: { ...SETTINGS, search_path: `"${schema}"` },
      types: { bigint: BIGINT },
      onnotice() {},
      onclose: () => this.drop(),
      socket: () => this.#connect(address),
    } as postgres.Options<Record<string, postgres.PostgresType>>);
  }

  /**
   * Rejects with the driver's error. After an error that is not the server's refusal, it is unknown
   * whether the statement was executed.
   */
  async query(text: string, values: Value[]): Promise<Row[]> {
    this.in_flight++;
    this.#heard_ms = performance.now();
    this.#watch ??= setTimeout(() => this.#look(), this.#answer_ms);
    try {
      // Without values: the simple protocol, in which several statements are one transaction.
      return await this.#sql.unsafe(text, values, { prepare: values.length > 0 });
    } catch (error) {
      if (this.#plain) throw notEncrypted(this.#where);
      if (isPassing(error)) this.drop();
      if (this.#silent) throw new NoAnswer(`no answer within ${this.#answer_ms} ms`);
      throw error;
    } finally {
      this.in_flight--;
      this.#heard_ms = performance.now();
    }
  }

  /** One timer for all statements: setting one for each costs as much as everything else here. */
  #look(): void {
    this.#watch = undefined;
    if (this.in_flight === 0) return; // The next statement sets it again.
    const remaining_ms = this.#heard_ms + this.#answer_ms - performance.now();
    if (remaining_ms > 0) this.#watch = setTimeout(() => this.#look(), remaining_ms);
    else {
      this.#silent = true;
      this.drop();
    }
  }

  /** Gives up the connection: statements in flight are rejected. */
  drop(): void {
    if (this.lost) return;
    this.lost = true;
    clearTimeout(this.#watch);
    this.#socket?.destroy();
    this.#sql.end({ timeout: 0 }).catch(() => {}); // It is over either way.
  }

  async close(): Promise<void> {
    if (this.lost) return;
    this.lost = true;
    clearTimeout(this.#watch);
    await this.#sql.end({ timeout: 5 });
  }

  #connect({ host, port, tls }: PostgresAddress): Promise<Socket> {
    if (this.#socket || this.lost) {
      return Promise.reject(
        Object.assign(new Error("the connection is closed"), { code: "CONNECTION_CLOSED" }),
      );
    }
    const socket = this.#socket = new Socket();
    // The driver takes the name that the certificate must have from here.
    Object.assign(socket, { host, port });
    return new Promise((resolve, reject) => {
      const closed = () =>
        reject(Object.assign(new Error("connecting took too long"), { code: "CONNECT_TIMEOUT" }));
      socket.once("error", reject).once("close", closed).once("connect", () => {
        socket.off("error", reject).off("close", closed);
        socket.setNoDelay(true).setKeepAlive(true, 30_000);
        // The driver starts TLS with a server that has just refused it, and treats the resulting
        // end as an outage.
        if (tls === "require" || tls === "verify-full") {
          socket.once("data", ([answer]) => this.#plain = answer === NO_TLS);
        }
        resolve(socket);
      });
      if (host.startsWith("/")) socket.connect(`${host}/.s.PGSQL.${port}`);
      else socket.connect(port, host);
    });
  }
}

/** In the driver's format: only an object lets us name the roots. */
function encryption(
  { tls, host, root_certificates }: PostgresAddress,
): postgres.Options<Record<string, never>>["ssl"] {
  if (tls !== "verify-full") return tls === "disable" ? false : tls;
  const roots = root_certificates === null ? {} : { ca: readRoots(root_certificates) };
  // Without `host`, an IP address is verified as 'localhost'.
  return { rejectUnauthorized: true, host, ...roots };
}

function notEncrypted(where: string): InvalidInputError {
  return new InvalidInputError(
    `Cannot use the journal in ${where} because the server has no TLS. ` +
      "Fix: enable it there (ssl = on); or, on a network that nobody else uses, " +
      "sslmode=disable&unencrypted=yes",
    { store: where },
  );
}

function readRoots(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (cause) {
    const why = (cause as Error).message;
    throw new InvalidInputError(
      `Cannot use the store's URL because its sslrootcert cannot be read: ${why}`,
      { path },
      { cause },
    );
  }
}

/**
 * The link to one PostgreSQL: a few connections, replaced when they break, and operations that
 * outlast its restarts.
 */
export class PostgresLink {
  readonly address: PostgresAddress;
  /** For people. */
  readonly where: string;
  readonly #options: Required<Omit<PostgresOptions, "now_sql">>;
  #connections: Connection[] = [];
  #closing = new AbortController();
  #away = false;

  /**
   * Connects at first use.
   * @throws {InvalidInputError} If the URL cannot be one.
   */
  constructor(url: string, options: PostgresOptions) {
    this.address = parsePostgresUrl(url);
    this.where = this.address.text;
    const { patience_ms = 60_000, answer_ms = 30_000, connections_max = 4, clock = systemClock } =
      options;
    this.#options = {
      patience_ms,
      answer_ms,
      connections_max,
      clock,
      onNotice: options.onNotice ?? (() => {}),
    };
  }

  /**
   * Calls `attempt` until it gets through to the server. `again`: an earlier attempt was cut off,
   * and may have been executed or still be in flight. @throws {EngineError}
   */
  async patiently<T>(what: string, attempt: (again: boolean) => Promise<T>): Promise<T> {
    const { clock, patience_ms } = this.#options;
    let since_ms: number | undefined;
    for (let wait_ms = BACKOFF_MS.first;; wait_ms = Math.min(2 * wait_ms, BACKOFF_MS.most)) {
      if (this.#closing.signal.aborted) throw closed(this.where);
      try {
        const answer = await attempt(since_ms !== undefined);
        this.#here();
        return answer;
      } catch (error) {
        if (!isPassing(error)) throw asPostgresError(error, what, this.where);
        since_ms ??= clock.monotonic();
        const away_ms = clock.monotonic() - since_ms;
        if (away_ms >= patience_ms) {
          throw awayTooLong(error, { what, where: this.where, ms: away_ms });
        }
        if (isOutage(error)) this.#notHere(error);
      }
      await clock.sleep(wait_ms, this.#closing.signal).catch(() => {}); // The loop's head says why.
    }
  }

  /** One statement on the least busy connection. Rejects with the driver's error. */
  async query<T = Row>(text: string, values: Value[] = []): Promise<T[]> {
    return await this.#pick().query(text, values) as T[];
  }

  /** Waits for statements in flight. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#connections.map((one) => one.close()));
  }

  /** The first idle connection, so that sequential work stays where its statements are prepared. */
  #pick(): Connection {
    if (this.#connections.some(({ lost }) => lost)) {
      this.#connections = this.#connections.filter(({ lost }) => !lost);
    }
    const { connections_max, answer_ms } = this.#options;
    let best: Connection | undefined;
    for (const one of this.#connections) {
      if (one.in_flight === 0) return one;
      if (!best || one.in_flight < best.in_flight) best = one;
    }
    if (best && this.#connections.length >= connections_max) return best;
    const connection = new Connection(this.address, { answer_ms });
    this.#connections.push(connection);
    return connection;
  }

  #notHere(error: unknown): void {
    if (this.#away) return;
    this.#away = true;
    const why = (error as Error).message || String((error as { code?: unknown }).code);
    this.#options.onNotice(
      `${this.where} is away: ${why}. Waiting for it up to ${this.#options.patience_ms / 1000} s`,
    );
  }

  #here(): void {
    if (!this.#away) return;
    this.#away = false;
    this.#options.onNotice(`${this.where} is back`);
  }
}

function closed(where: string): InvalidInputError {
  return new InvalidInputError(`Cannot use the journal ${where} because it is closed`);
}

/** An array parameter in PostgreSQL's format: `{"a","b",NULL}`. */
export function arrayOf(values: readonly (string | number | null)[]): string {
  return `{${
    values.map((one) => typeof one === "string" ? quoted(one) : one ?? "NULL").join(",")
  }}`;
}

function quoted(text: string): string {
  return `"${/["\\]/.test(text) ? text.replace(/["\\]/g, "\\$&") : text}"`;
}
