import { deepStrictEqual, match, ok } from "node:assert/strict";
import { ManualClock } from "../../../engine/clock.ts";
import type { PostgresOptions } from "../../../engine/stores/postgres_link.ts";
import { PostgresStore } from "../../../engine/stores/postgres_store.ts";
import { MemoryStore } from "../../../testing/mod.ts";
import { newOwner, newRun, row } from "../../contracts/store_rows.ts";
import { type Operation, perform, snapshot } from "../../contracts/store_operations.ts";
import { POSTGRES_MISSING, TEST_POSTGRES, testSchema } from "../../postgres.ts";

/**
 * `request`: the statement never arrives. `answer`: it is done, and nobody hears of it. `silence`:
 * the wire stays open.
 */
type Lost = "request" | "answer" | "silence";
const LEASE = { lease_ms: 1_000_000 };

/** A wire to PostgreSQL that can be cut at a chosen message. */
class Wire {
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  #cut: { lost: Lost; remaining: number } | null = null;
  #open = new Set<Deno.Conn>();
  /** Connections wait for this. */
  held: Promise<void> = Promise.resolve();

  constructor(readonly target: URL) {
    this.#serve();
  }

  get host(): string {
    const { hostname, port } = this.#listener.addr;
    return `${hostname}:${port}`;
  }

  /** Cuts at the `nth` message of the client from now. */
  cutAt(nth: number, lost: Lost): void {
    this.#cut = { lost, remaining: nth };
  }

  /** Whether the cut was made; there is none to come after this. */
  wasCut(): boolean {
    const done = this.#cut === null;
    this.#cut = null;
    return done;
  }

  close(): void {
    this.#listener.close();
    for (const conn of this.#open) drop(conn);
  }

  async #serve(): Promise<void> {
    for await (const client of this.#listener) {
      this.held.then(() => this.#carry(client)).catch(() => drop(client));
    }
  }

  async #carry(client: Deno.Conn): Promise<void> {
    const server = await Deno.connect({
      hostname: this.target.hostname,
      port: Number(this.target.port || 5432),
    });
    const both = [client, server];
    for (const conn of both) this.#open.add(conn);
    let deaf = false;
    const end = () => both.forEach(drop);
    const up = pump(client, async (chunk) => {
      const cut = this.#cut !== null && --this.#cut.remaining === 0 ? this.#cut : null;
      if (cut) this.#cut = null;
      if (cut?.lost === "request") return end();
      if (cut?.lost === "silence") return; // As a partition does it: no end, no reset.
      if (cut) deaf = true;
      await server.write(chunk);
    });
    const down = pump(server, async (chunk) => deaf ? end() : void await client.write(chunk));
    await Promise.race([up, down]);
    end();
    await Promise.all([up, down]);
    for (const conn of both) this.#open.delete(conn);
  }
}

/** Calls `take` with everything that arrives, until the connection ends in whatever way. */
async function pump(
  from: Deno.Conn,
  take: (chunk: Uint8Array) => Promise<void> | void,
): Promise<void> {
  const buffer = new Uint8Array(65_536);
  try {
    for (let n = await from.read(buffer); n !== null; n = await from.read(buffer)) {
      await take(buffer.slice(0, n));
    }
  } catch { /* Closed from this end or the other: the wire is cut. */ }
}

function drop(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch { /* It is closed. */ }
}

type Bench = {
  wire: Wire;
  far: PostgresStore;
  near: PostgresStore;
  open(options?: PostgresOptions): PostgresStore;
};

/** `far` is behind the wire, `near` is not. */
async function withWire(body: (bench: Bench) => Promise<void>): Promise<void> {
  const schema = testSchema();
  const wire = new Wire(new URL(TEST_POSTGRES));
  const opened: PostgresStore[] = [];
  const open = (options: PostgresOptions = {}) => {
    const url = schema.url.replace(new URL(TEST_POSTGRES).host, wire.host);
    const store = new PostgresStore(url, { connections_max: 1, ...options });
    opened.push(store);
    return store;
  };
  try {
    const [near, far] = [schema.open(), open()];
    await near.heads();
    await far.heads();
    await body({ wire, far, near, open });
  } finally {
    for (const store of opened) await store.close();
    wire.close();
    await schema.dispose();
  }
}

const begun: Operation[] = [
  { op: "create", run: "a", queue: null, priority: 0, rows: 1 },
  { op: "claim", run: "a", owner: "one", ...LEASE, force: false, seen: null, ended: false },
  { op: "create", run: "b", queue: "q", priority: 1, rows: 0 },
];
const ownership = { run: "a", late: 0 };
const again: Operation = {
  op: "claim",
  run: "a",
  owner: "one",
  ...LEASE,
  force: false,
  seen: null,
  ended: false,
};
const failed: Operation[] = [{ op: "finish", ...ownership, status: "failed", error: "{}" }, again];

/** Every operation that writes, after what prepares it. */
const CASES: Record<string, Operation[]> = {
  "create": [{ op: "create", run: "c", queue: "q", priority: 0, rows: 2 }],
  "create of a taken id": [{ op: "create", run: "a", queue: null, priority: 0, rows: 2 }],
  "claim": [again],
  "claim with force": [{
    op: "claim",
    run: "a",
    owner: "two",
    ...LEASE,
    force: true,
    seen: 0,
    ended: false,
  }],
  "claim that is refused": [{
    op: "claim",
    run: "a",
    owner: "two",
    ...LEASE,
    force: false,
    seen: 0,
    ended: false,
  }],
  "dequeue": [{ op: "dequeue", owner: "two", ...LEASE, pick: 1, force: false }],
  "dequeue of another's": [{ op: "dequeue", owner: "two", ...LEASE, pick: 0, force: false }],
  "renew": [{ op: "renew", ...ownership, ...LEASE }],
  "append of one row": [{ op: "append", ...ownership, keys: ["x"], kind: "result" }],
  "append of rows": [{ op: "append", ...ownership, keys: ["x", "y", "x"], kind: "result" }],
  "append of nothing": [{ op: "append", ...ownership, keys: [], kind: "result" }],
  "append of a late owner": [{ op: "append", ...ownership, late: 1, keys: ["x"], kind: "result" }],
  "remove": [{ op: "remove", ...ownership, seqs: [1] }],
  "request": [{ op: "request", run: "a", kind: "cancel" }],
  "request of a free run": [{ op: "request", run: "b", kind: "cancel" }],
  "finish": [{ op: "finish", ...ownership, status: "done", error: undefined }],
  "release": [{ op: "release", ...ownership }],
  "reopen": [...failed, { op: "reopen", ...ownership }],
};

for (const [name, operations] of Object.entries(CASES)) {
  Deno.test({
    name: `PostgreSQL: ${name}, cut off at any message, is done once and answered rightly`,
    ignore: POSTGRES_MISSING !== null,
    fn: () =>
      withWire(async ({ wire, far, near, open }) => {
        const oracle = new MemoryStore({ clock: new ManualClock() });
        const prepare = [...begun, ...operations.slice(0, -1)];
        const operation = operations.at(-1)!;
        let cuts = 0;
        for (const lost of ["request", "answer"] as const) {
          for (let nth = 1, cut = true; cut; nth++) {
            const prefix = `${lost}${nth}_`;
            // Every second time the store knows the run, and every second time it meets it for the
            // first time.
            const store = nth % 2 ? far : open();
            for (const one of prepare) {
              await perform(oracle, one, prefix);
              await perform(nth % 2 ? far : near, one, prefix);
            }
            if (store !== far) await store.heads();
            wire.cutAt(nth, lost);
            const answer = await perform(store, operation, prefix);
            cut = wire.wasCut();
            cuts += Number(cut);
            deepStrictEqual({ lost, nth, answer }, {
              lost,
              nth,
              answer: await perform(oracle, operation, prefix),
            });
            deepStrictEqual(await snapshot(near, prefix), await snapshot(oracle, prefix));
            if (store !== far) await store.close();
          }
        }
        ok(cuts >= 2, `only ${cuts} cuts`);
      }),
  });
}

for (const lost of ["request", "answer"] as const) {
  Deno.test({
    name: `PostgreSQL: an append whose ${lost} was lost learns its fate after a takeover`,
    ignore: POSTGRES_MISSING !== null,
    fn: () =>
      withWire(async ({ wire, far, near }) => {
        for (const size of [1, 2]) {
          const run = `r${size}`;
          const rows = [row("x"), row("y")].slice(0, size);
          await far.create(newRun(run));
          await far.claim(run, newOwner("one"), LEASE);
          // From here on the statement is prepared: the next message carries it.
          await far.append(run, 1, rows);
          let release = () => {};
          wire.held = new Promise((resolve) => release = resolve);
          wire.cutAt(1, lost);
          const answer = far.append(run, 1, rows);
          const written = lost === "answer" ? size : 0;
          while ((await near.head(run))?.last_seq !== size + written);
          await near.claim(run, newOwner("two"), { ...LEASE, force: true });
          deepStrictEqual(await near.append(run, 2, rows), {
            fenced: false,
            last_seq: 2 * size + written,
          });
          release();
          deepStrictEqual(
            await answer,
            written ? { fenced: false, last_seq: 2 * size } : { fenced: true },
          );
          deepStrictEqual((await near.read(run)).length, 2 * size + written);
        }
      }),
  });
}

Deno.test({
  name: "PostgreSQL: a server that falls silent is left, and what it was asked is asked again",
  ignore: POSTGRES_MISSING !== null,
  fn: () =>
    withWire(async ({ wire, near, open }) => {
      await near.create(newRun("a"));
      await near.claim("a", newOwner("one"), LEASE);
      const notices: string[] = [];
      const store = open({ answer_ms: 300, onNotice: (text) => notices.push(text) });
      await store.append("a", 1, [row("x")]);
      wire.cutAt(1, "silence");
      deepStrictEqual(await store.append("a", 1, [row("y")]), { fenced: false, last_seq: 2 });
      match(notices.join(), /is away: no answer within 300 ms/);
      deepStrictEqual((await near.read("a")).map(({ key }) => key), ["x", "y"]);
    }),
});
