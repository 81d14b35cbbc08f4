import { deepStrictEqual, ok } from "node:assert/strict";
import { encode } from "@msgpack/msgpack";
import { ArtifactStore, reachableArtifacts, sweepArtifacts } from "../../engine/mod.ts";
import { MemoryStore } from "../../testing/mod.ts";
import { newRun, row } from "../contracts/store_rows.ts";

const OLD = new Date(0);
const text = (value: string) => new TextEncoder().encode(value);

async function fresh(): Promise<ArtifactStore> {
  return new ArtifactStore(await Deno.makeTempDir({ prefix: "gc_test_" }));
}

/** A file as it is long after its put. */
function age(artifacts: ArtifactStore, ...refs: { sha256: string; bytes: number }[]): void {
  for (const ref of refs) Deno.utimeSync(artifacts.path(ref), OLD, OLD);
}

Deno.test("reachableArtifacts() follows references in rows, JSON and MessagePack", async () => {
  const artifacts = await fresh();
  const [inPacked, named, alone] = [
    await artifacts.put(text("a")),
    await artifacts.put(text("b")),
    await artifacts.put(text("c")),
  ];
  const packed = await artifacts.put(encode({ slab: inPacked, version: named.sha256 }));
  const manifest = await artifacts.putJson({ groups: [{ slab: packed }], parent: named.sha256 });
  const store = new MemoryStore();
  await store.create(newRun("a"), [
    row("x", { value: JSON.stringify({ output: { batch: manifest } }) }),
  ]);
  await store.create(newRun("b"), [
    row("y", { value: JSON.stringify({ $artifact: { sha256: "f".repeat(64), bytes: 1 } }) }),
  ]);
  await store.create(newRun("../misnamed"), [
    row("z", { value: JSON.stringify({ sha256: "e".repeat(64) }) }),
  ]);
  const found = await reachableArtifacts([store], artifacts);
  const all = ["f".repeat(64), manifest.sha256, packed.sha256, inPacked.sha256, "e".repeat(64)];
  deepStrictEqual([...found].sort(), all.sort());
  ok(!found.has(alone.sha256));
});

Deno.test("sweepArtifacts() removes what is old and unreachable, and says how much", async () => {
  const artifacts = await fresh();
  const [kept, gone, young] = [
    await artifacts.put(text("kept")),
    await artifacts.put(text("gone")),
    await artifacts.put(text("young")),
  ];
  age(artifacts, kept, gone);
  const options = { reachable: new Set([kept.sha256]), before_ms: Date.now() - 60_000 };
  deepStrictEqual(await sweepArtifacts(artifacts, { ...options, dry_run: true }), {
    count: 1,
    bytes: 4,
  });
  ok(await artifacts.has(gone));
  deepStrictEqual(await sweepArtifacts(artifacts, options), { count: 1, bytes: 4 });
  deepStrictEqual([
    await artifacts.has(kept),
    await artifacts.has(gone),
    await artifacts.has(young),
  ], [
    true,
    false,
    true,
  ]);
  deepStrictEqual(await sweepArtifacts(artifacts, options), { count: 0, bytes: 0 });
});

Deno.test("an artifact that any process puts again is young again", async () => {
  const artifacts = await fresh();
  const ref = await artifacts.put(text("again"));
  for (const writer of [artifacts, new ArtifactStore(artifacts.dir)]) {
    age(artifacts, ref);
    await writer.put(text("again"));
    await sweepArtifacts(artifacts, { reachable: new Set(), before_ms: Date.now() - 60_000 });
    ok(await artifacts.has(ref));
  }
});

Deno.test("a put between a sweep's first look and its last brings the artifact back", async () => {
  const artifacts = await fresh();
  const ref = await artifacts.put(text("wanted"));
  age(artifacts, ref);
  const rename = Deno.renameSync;
  Deno.renameSync = (from, to) => {
    const { utimeSync } = Deno;
    // What a put does first.
    if (String(to).includes("/tmp/gc.")) utimeSync(from, new Date(), new Date());
    rename(from, to);
  };
  try {
    const removed = await sweepArtifacts(artifacts, {
      reachable: new Set(),
      before_ms: Date.now() - 60_000,
    });
    deepStrictEqual(removed, { count: 0, bytes: 0 });
  } finally {
    Deno.renameSync = rename;
  }
  deepStrictEqual(await artifacts.get(ref), text("wanted"));
});

Deno.test("the next sweep finishes one that was killed, and restores what is used", async () => {
  const artifacts = await fresh();
  const [wanted, gone] = [await artifacts.put(text("wanted")), await artifacts.put(text("gone"))];
  for (const ref of [wanted, gone]) {
    age(artifacts, ref);
    Deno.renameSync(artifacts.path(ref), `${artifacts.dir}/tmp/gc.${ref.sha256}`);
  }
  // Its own sweep of dead writers' files leaves these.
  await new ArtifactStore(artifacts.dir).put(text("another"));
  const options = { reachable: new Set([wanted.sha256]), before_ms: Date.now() - 60_000 };
  await sweepArtifacts(artifacts, options);
  deepStrictEqual(await new ArtifactStore(artifacts.dir).get(wanted), text("wanted"));
  deepStrictEqual([await artifacts.has(gone), [...Deno.readDirSync(`${artifacts.dir}/tmp`)]], [
    false,
    [],
  ]);
});
