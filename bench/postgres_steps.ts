/**
 * Durable steps on PostgreSQL (`synchronous_commit=on`): the engine, the bare fenced append over
 * the same driver, and DBOS-TS in a separate process on the same server. Each repeat measures all
 * of them in turn.
 */
import postgres from "postgres";
import { z } from "zod";
import { DbosPeer } from "./dbos_peer.ts";
import { median, rounded } from "./quickstart_run.ts";
import {
  ArtifactStore,
  defineStage,
  Engine,
  graph,
  PostgresStore,
  processOwner,
} from "../engine/mod.ts";

type PostgresSizes = { repeats: number; steps: number };
type Measured = Record<string, number | null>;

/** Runs at once, and the steps of each. */
const WIDE = { workflows: 100, steps: 20 };
const SERVER = Deno.env.get("HOLDFAST_TEST_POSTGRES") ?? "postgres://root@127.0.0.1:5432/postgres";
const FIELDS = [
  "postgres_serial_steps_per_s",
  "postgres_raw_appends_per_s",
  "dbos_serial_steps_per_s",
  "postgres_concurrent_steps_per_s",
  "dbos_concurrent_steps_per_s",
  "postgres_vs_dbos_serial",
  "postgres_vs_raw",
  "postgres_vs_dbos_concurrent",
];

/** The statement of the engine's design, and nothing else. */
const BARE_APPEND = `WITH head AS (
    UPDATE runs SET last_seq = last_seq + $3
    WHERE id = $1 AND epoch = $2 AND owner IS NOT NULL RETURNING no, last_seq)
  INSERT INTO journal (run_no, seq, epoch, at_ms, kind, key, input_hash, value)
  SELECT no, last_seq, $2, (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    $4, $5, NULL, $6 FROM head
  RETURNING seq`;

/** All null, with a message on standard error, if there is no PostgreSQL. */
export async function postgresSteps(
  dir: string,
  { repeats, steps }: PostgresSizes,
): Promise<Measured> {
  const admin = postgres(SERVER, { max: 1, onnotice() {}, connect_timeout: 5 });
  try {
    await admin`SELECT 1`;
  } catch (error) {
    await admin.end({ timeout: 1 });
    console.error(
      `PostgreSQL is left out: ${(error as Error).message}. Name one with HOLDFAST_TEST_POSTGRES`,
    );
    return Object.fromEntries(FIELDS.map((field) => [field, null]));
  }
  const name = `holdfast_bench_${crypto.randomUUID().slice(0, 8)}`;
  await admin.unsafe(`CREATE DATABASE ${name}`);
  await admin.unsafe(`CREATE DATABASE ${name}_dbos`);
  try {
    return await measure({ dir, url: beside(name), peer: beside(`${name}_dbos`) }, {
      repeats,
      steps,
    });
  } finally {
    for (const one of [name, `${name}_dbos`]) {
      await admin.unsafe(`DROP DATABASE IF EXISTS ${one} WITH (FORCE)`);
    }
    await admin.end();
  }
}

/** A different database of the server. */
function beside(name: string): string {
  const url = new URL(SERVER);
  url.pathname = `/${name}`;
  return url.href;
}

type Place = { dir: string; url: string; peer: string };

async function measure(
  { dir, url, peer }: Place,
  { repeats, steps }: PostgresSizes,
): Promise<Measured> {
  const store = new PostgresStore(url);
  const dbos = await DbosPeer.start(peer);
  const raw = await bareAppends(store, url);
  const engine = new Engine({ store, artifacts: new ArtifactStore(`${dir}/artifacts`) });
  const rates = { serial: [], raw: [], dbos: [], wide: [], dbos_wide: [] } as Record<
    string,
    number[]
  >;
  for (let repeat = 0; repeat <= repeats; repeat++) {
    const serial = { workflows: 1, steps };
    const measured = {
      serial: await holdfastStepsPerSecond(engine, serial),
      raw: await raw.perSecond(steps),
      dbos: await dbos.stepsPerSecond(serial),
      wide: await holdfastStepsPerSecond(engine, WIDE),
      dbos_wide: await dbos.stepsPerSecond(WIDE),
    };
    if (repeat === 0) continue; // Warms up: statements are prepared and code is compiled.
    for (const [name, rate] of Object.entries(measured)) rates[name]!.push(rate);
  }
  await Promise.all([dbos.stop(), raw.close()]);
  await store.close();
  const ratio = (a: string, b: string) =>
    rounded(median(rates[a]!.map((rate, i) => rate / rates[b]![i]!)));
  return {
    postgres_serial_steps_per_s: rounded(median(rates.serial!)),
    postgres_raw_appends_per_s: rounded(median(rates.raw!)),
    dbos_serial_steps_per_s: rounded(median(rates.dbos!)),
    postgres_concurrent_steps_per_s: rounded(median(rates.wide!)),
    dbos_concurrent_steps_per_s: rounded(median(rates.dbos_wide!)),
    postgres_vs_dbos_serial: ratio("serial", "dbos"),
    postgres_vs_raw: ratio("serial", "raw"),
    postgres_vs_dbos_concurrent: ratio("wide", "dbos_wide"),
  };
}

const chain = defineStage({
  name: "chain",
  version: 1,
  input: z.strictObject({ steps: z.number() }),
  output: z.number(),
  async run({ steps }, ctx) {
    let sum = 0;
    for (let i = 0; i < steps; i++) sum += await ctx.step("step", () => Promise.resolve(i));
    return sum;
  },
});
const chainOf = graph(
  "chain",
  z.strictObject({ steps: z.number() }),
  (g, { steps }) => g.stage(chain, { steps }),
);

/** From the creation of the first run to the end of the last. */
async function holdfastStepsPerSecond(
  engine: Engine,
  { workflows, steps }: typeof WIDE,
): Promise<number> {
  const began = performance.now();
  const outcomes = await Promise.all(Array.from({ length: workflows }, async () => {
    const { id } = await engine.create(chainOf, { steps });
    return await engine.execute(id, chainOf.build({ steps }));
  }));
  const seconds = (performance.now() - began) / 1000;
  for (const outcome of outcomes) {
    if (outcome.status !== "done" || outcome.output !== steps * (steps - 1) / 2) {
      throw new Error(`Cannot measure because a run ended as ${JSON.stringify(outcome)}`);
    }
  }
  return workflows * steps / seconds;
}

type Bare = { perSecond(count: number): Promise<number>; close(): Promise<void> };

/** The bare statement in a tight loop on the tables of the store, each awaited before the next. */
async function bareAppends(store: PostgresStore, url: string): Promise<Bare> {
  const facts = { entry: "", graph: "", graph_hash: "", config: "", packages: "" };
  await store.create({ id: "bare", name: "bare", ...facts });
  const { head: { epoch } } = await store.claim("bare", processOwner(), { lease_ms: 3_600_000 });
  const connection = { synchronous_commit: "on", search_path: "holdfast" };
  const sql = postgres(url, { max: 1, fetch_types: false, connection });
  return {
    async perSecond(count) {
      const began = performance.now();
      for (let i = 0; i < count; i++) {
        const values = ["bare", epoch, 1, "result", `chain#1/step#${i}`, `{"v":${i}}`];
        const rows = await sql.unsafe(BARE_APPEND, values, { prepare: true });
        if (rows.length !== 1) throw new Error("Cannot measure because the bare append was fenced");
      }
      return count / ((performance.now() - began) / 1000);
    },
    close: () => sql.end(),
  };
}
