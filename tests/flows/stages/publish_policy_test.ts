import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { sha256Hex } from "../../../engine/mod.ts";
import { online } from "../../../flows/online.ts";
import { publishPolicy } from "../../../flows/mod.ts";
import { FakeSampler } from "../../../testing/mod.ts";
import { type FakeBench, fakeBench, valuesOf } from "./alone.ts";
import { execute, onlineConfig, stores } from "../fixtures.ts";

/** Names of publications that are there. */
function names({ dir }: { dir: string }): string[] {
  return [...Deno.readDirSync(`${dir}/publications`)].map(({ name }) => name).toSorted();
}

/** Publishes as many versions, each a minute after the one before, and names them in order. */
async function published({ dir, done, start }: FakeBench, count: number): Promise<string[]> {
  const publications: string[] = [];
  for (let n = 1; n <= count; n++) {
    const policy = await start(n / 10);
    await done(publishPolicy, { policy });
    publications.push(policy.version.slice(0, 16));
    const at = new Date(n * 60_000);
    await Deno.utime(`${dir}/publications/${publications.at(-1)}`, at, at);
  }
  return publications;
}

Deno.test("publishPolicy() puts the weights on every sampler, and records each proof", async () => {
  const samplers = [new FakeSampler(), new FakeSampler()];
  const { dir, model, ran, start } = await fakeBench(() => ({ samplers }));
  const policy = await start();
  const { outcome, rows } = await ran(publishPolicy, { policy });
  strictEqual(outcome.status, "done");
  const { publication } = (outcome as { output: { publication: { dir: string } } }).output;
  strictEqual(publication.dir, `${dir}/publications/${policy.version.slice(0, 16)}`);
  deepStrictEqual(samplers.map(({ version }) => version), [policy.version, policy.version]);
  const proof = {
    probe_sha256: sha256Hex(await Deno.readFile(`${model}/weights.json`)),
    seconds: 0,
  };
  deepStrictEqual(valuesOf(rows, "note/publication"), {
    [policy.version]: { publication, proofs: [proof, proof] },
  });
});

Deno.test("publishPolicy() keeps the newest and the three written before it", async () => {
  const bench = await fakeBench();
  const publications = await published(bench, 4);
  deepStrictEqual(names(bench), publications.toSorted());
  const policy = await bench.start(0.5);
  const { rows } = await bench.ran(publishPolicy, { policy });
  const newest = policy.version.slice(0, 16);
  deepStrictEqual(names(bench), [...publications.slice(1), newest].toSorted());
  deepStrictEqual(valuesOf(rows, "note/publication_dropped"), {
    [publications[0]!]: { dir: `${bench.dir}/publications/${publications[0]}` },
  });
});

Deno.test("publishPolicy() leaves directories that it has not named", async () => {
  const bench = await fakeBench();
  await published(bench, 1);
  const others = ["notes", "0123456789abcde", ".0123456789abcdef.tmp"];
  for (const name of others) {
    await Deno.mkdir(`${bench.dir}/publications/${name}`);
    await Deno.utime(`${bench.dir}/publications/${name}`, 0, 0);
  }
  const publications = await published(bench, 4);
  const { rows } = await bench.ran(publishPolicy, { policy: await bench.start(0.5) });
  deepStrictEqual(Object.keys(valuesOf(rows, "note/publication_dropped")), [publications[0]]);
  deepStrictEqual(names(bench).filter((name) => others.includes(name)), others.toSorted());
  strictEqual(names(bench).length, others.length + 4);
});

Deno.test("publishPolicy() writes the same directory when it runs again", async () => {
  const bench = await fakeBench();
  const publications = await published(bench, 5);
  const dropped = await bench.done(publishPolicy, { policy: await bench.start(0.1) });
  strictEqual(dropped.publication.dir, `${bench.dir}/publications/${publications[0]}`);
  const again = await bench.done(publishPolicy, { policy: await bench.start(0.1) });
  deepStrictEqual(again, dropped);
});

Deno.test("online keeps only the newest publications, and records deletions", async () => {
  const { store, artifacts, dir, model } = await stores();
  await execute(online, onlineConfig(model, { rounds: 7 }), { store, artifacts, dir });
  const named = (kind: string) =>
    store.rows("run").filter((row) => row.kind === kind).map(({ key }) => key.slice(0, 16));
  const dropped = named("note/publication_dropped");
  strictEqual(dropped.length, 3);
  deepStrictEqual(
    names({ dir }),
    named("note/publication").filter((name) => !dropped.includes(name)).toSorted(),
  );
});
