import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { encode } from "@msgpack/msgpack";
import { ArtifactStore, reachableArtifacts, sweepArtifacts } from "../../../engine/mod.ts";
import { MemoryStore } from "../../../testing/mod.ts";
import { newRun, row } from "../../contracts/store_rows.ts";

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
  await store.create(newRun("c"), [
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
    refused: [],
  });
  ok(await artifacts.has(gone));
  deepStrictEqual(await sweepArtifacts(artifacts, options), { count: 1, bytes: 4, refused: [] });
  deepStrictEqual([
    await artifacts.has(kept),
    await artifacts.has(gone),
    await artifacts.has(young),
  ], [
    true,
    false,
    true,
  ]);
  deepStrictEqual(await sweepArtifacts(artifacts, options), { count: 0, bytes: 0, refused: [] });
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

Deno.test("sweepArtifacts() removes what is accepted however young, and no other young file", async () => {
  const artifacts = await fresh();
  const [gone, young] = [await artifacts.put(text("gone")), await artifacts.put(text("young"))];
  const accepted = new Set([artifacts.path(gone)]);
  const options = { reachable: new Set<string>(), before_ms: Date.now() - 60_000, accepted };
  deepStrictEqual(await sweepArtifacts(artifacts, options), { count: 1, bytes: 4, refused: [] });
  deepStrictEqual([await artifacts.has(gone), await artifacts.has(young)], [false, true]);
});

for (const isAccepted of [false, true]) {
  Deno.test(`a put between a sweep's first look and its last brings ${isAccepted ? "an accepted" : "the"} artifact back`, async () => {
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
        accepted: new Set(isAccepted ? [artifacts.path(ref)] : []),
      });
      deepStrictEqual(removed, { count: 0, bytes: 0, refused: [] });
    } finally {
      Deno.renameSync = rename;
    }
    deepStrictEqual(await artifacts.get(ref), text("wanted"));
  });
}

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

/** A store whose folder of an old artifact, and `tmp`, are links to another place's. */
async function linked() {
  const [artifacts, other] = [await fresh(), await fresh()];
  const ref = await other.put(text("another home's"));
  const unfinished = `${other.dir}/tmp/7.00000000-0000-4000-8000-000000000000`;
  await Deno.writeTextFile(unfinished, "half");
  age(other, ref);
  Deno.utimeSync(unfinished, OLD, OLD);
  const folder = ref.sha256.slice(0, 2);
  for (const name of [folder, "tmp"]) {
    await Deno.symlink(`${other.dir}/${name}`, `${artifacts.dir}/${name}`);
  }
  return { artifacts, other, ref, unfinished, folder };
}

Deno.test("sweepArtifacts() removes nothing behind a link, and says so", async () => {
  const { artifacts, other, ref, unfinished, folder } = await linked();
  for (const dry_run of [true, false]) {
    const { refused, ...removed } = await sweepArtifacts(artifacts, {
      reachable: new Set(),
      before_ms: Date.now() - 60_000,
      dry_run,
    });
    deepStrictEqual(removed, { count: 0, bytes: 0 });
    deepStrictEqual(
      refused.map(({ dir }) => dir).sort(),
      [`${artifacts.dir}/${folder}`, `${artifacts.dir}/tmp`],
    );
    for (const { why } of refused) match(why, /it is reached through a link: its real path is/);
  }
  ok(await other.has(ref));
  strictEqual(await Deno.readTextFile(unfinished), "half");
});

Deno.test("sweepArtifacts() takes nothing back from a linked directory", async () => {
  const { artifacts, other, ref } = await linked();
  const aside = `${other.dir}/tmp/gc.${ref.sha256}`;
  await Deno.rename(other.path(ref), aside);
  await sweepArtifacts(artifacts, { reachable: new Set([ref.sha256]), before_ms: 0 });
  ok((await Deno.lstat(aside)).isFile);
});

Deno.test("an artifact store's first put removes nothing behind a link", async () => {
  const { artifacts, unfinished } = await linked();
  await artifacts.put(text("mine"));
  strictEqual(await Deno.readTextFile(unfinished), "half");
});
