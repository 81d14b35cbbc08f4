import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { z } from "zod";
import {
  ArtifactStore,
  defineStage,
  Engine,
  graph,
  InfrastructureError,
  InvalidInputError,
  type JournalRow,
  PostgresStore,
} from "../../../engine/mod.ts";
import { newOwner, newRun, row } from "../../contracts/store_rows.ts";
import { POSTGRES_MISSING } from "../../postgres.ts";
import { PostgresCluster } from "../../postgres_cluster.ts";

const ignore = POSTGRES_MISSING !== null;
const STEPS = 100;
const LEASE = { lease_ms: 60_000 };

async function withCluster(body: (cluster: PostgresCluster) => Promise<void>): Promise<void> {
  const cluster = await PostgresCluster.start();
  try {
    await body(cluster);
  } finally {
    await cluster.dispose();
  }
}

/** Steps between two outages. */
const BETWEEN = 30;

/**
 * A stage of `STEPS` steps, of which the `ran` list tells each body that ran. No outage is left
 * behind: the step waits for its begin.
 */
function steps(ran: number[], begun: (outage: number) => Promise<void>) {
  const stage = defineStage({
    name: "body",
    version: 1,
    input: z.strictObject({}),
    output: z.number(),
    async run(_, ctx) {
      for (let i = 0; i < STEPS; i++) {
        await ctx.step("step", async () => {
          if (i > 0 && i % BETWEEN === 0) await begun(i / BETWEEN);
          return ran.push(i);
        });
      }
      return STEPS;
    },
  });
  return graph("steps", z.strictObject({}), (g) => g.stage(stage, {}));
}

Deno.test({
  name: "a run ends, each step run once, while PostgreSQL is restarted and killed",
  ignore,
  fn: () =>
    withCluster(async (cluster) => {
      const notices: string[] = [];
      const store = new PostgresStore(cluster.url, { onNotice: (text) => notices.push(text) });
      const artifacts = await Deno.makeTempDir();
      const ran: number[] = [];
      const outages = Array.from({ length: Math.floor((STEPS - 1) / BETWEEN) }, () =>
        Promise.withResolvers<void>());
      const definition = steps(ran, (outage) =>
        outages[outage - 1]!.promise);
      const engine = new Engine({ store, artifacts: new ArtifactStore(artifacts) });
      await engine.create(definition, {}, { id: "run" });
      let ended = false;
      const running = engine.execute("run", definition.build({})).finally(() => ended = true);
      const kinds = ["fast", "immediate", "kill"] as const;
      for (const [n, outage] of outages.entries()) {
        await untilLength(ran, { length: BETWEEN * n + BETWEEN / 2, over: () => ended });
        outage.resolve();
        const kind = kinds[n % kinds.length]!;
        if (kind === "kill") await cluster.kill().then(() => cluster.start());
        else await cluster.restart(kind);
      }
      deepStrictEqual(await running, { status: "done", output: STEPS });
      deepStrictEqual(ran, Array.from({ length: STEPS }, (_, i) => i));
      assertWhole(await store.read("run"), (await store.head("run"))!.last_seq);
      ok(
        notices.some((text) => /is away: .* Waiting for it up to 60 s/.test(text)),
        notices.join("\n"),
      );
      strictEqual(notices.at(-1), `${store.where} is back`);
      await store.close();
      await Deno.remove(artifacts, { recursive: true });
    }),
});

Deno.test({
  name: "an operation waits for a server that is away until its patience ends",
  ignore,
  fn: () =>
    withCluster(async (cluster) => {
      const notices: string[] = [];
      const url = cluster.url.replace("postgres@", "postgres:s3cret@");
      const store = new PostgresStore(url, {
        patience_ms: 600,
        onNotice: (text) => notices.push(text),
      });
      await store.create(newRun("a"));
      await store.claim("a", newOwner("one"), LEASE);
      await cluster.stop();
      await rejects(store.append("a", 1, [row("x")]), (error: InfrastructureError) => {
        deepStrictEqual([error.code, error.retryable], ["infrastructure", true]);
        match(
          error.message,
          /^Cannot append 1 rows to run 'a' in postgres:.* has been away for \d+ s .*Nothing/,
        );
        return true;
      });
      const starting = cluster.start();
      const patient = new PostgresStore(url);
      deepStrictEqual(await patient.append("a", 1, [row("y")]), { fenced: false, last_seq: 1 });
      await starting;
      deepStrictEqual(await store.append("a", 1, [row("z")]), { fenced: false, last_seq: 2 });
      strictEqual(notices.length, 2);
      for (const one of [store, patient]) await one.close();
      await rejects(store.heads(), InvalidInputError);
      ok(!JSON.stringify(notices).includes("s3cret"));
    }),
});

/** Every row once, without a gap. */
function assertWhole(rows: JournalRow[], last_seq: number): void {
  deepStrictEqual(rows.map(({ seq }) => seq), Array.from({ length: last_seq }, (_, i) => i + 1));
  const results = rows.filter(({ kind, key }) => kind === "result" && key.includes("step")).map((
    { key },
  ) => key);
  strictEqual(new Set(results).size, STEPS);
  strictEqual(results.length, STEPS);
}

type Until = { length: number; over: () => boolean };

async function untilLength(list: readonly unknown[], { length, over }: Until): Promise<void> {
  while (list.length < length && !over()) await new Promise((resolve) => setTimeout(resolve, 1));
}
