import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { ArtifactStore } from "../../../engine/files/artifacts.ts";
import { sha256Hex } from "../../../engine/canonical.ts";
import { ManualClock } from "../../../engine/clock.ts";
import type { InfrastructureError, LostRecordError } from "../../../engine/errors.ts";

async function withDirectory(body: (dir: string) => Promise<void>): Promise<void> {
  const home = await Deno.makeTempDir();
  try {
    await body(`${home}/artifacts`);
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

const bytesOf = (text: string) => new TextEncoder().encode(text);

async function names(dir: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(dir))).map((entry) => entry.name).sort();
}

Deno.test("ArtifactStore.put() names a file by its content and get() answers the bytes", () =>
  withDirectory(async (dir) => {
    const store = new ArtifactStore(dir);
    const ref = await store.put(bytesOf("abc"));
    deepStrictEqual(ref, { sha256: sha256Hex("abc"), bytes: 3 });
    strictEqual(store.path(ref), `${dir}/ba/${ref.sha256}`);
    strictEqual(await Deno.readTextFile(store.path(ref)), "abc");
    deepStrictEqual(await new ArtifactStore(dir).get(ref), bytesOf("abc"));
    const empty = await store.put(new Uint8Array(0));
    deepStrictEqual(await store.get(empty), new Uint8Array(0));
    deepStrictEqual([await store.has(ref), await store.has({ ...ref, sha256: "0".repeat(64) })], [
      true,
      false,
    ]);
  }));

Deno.test("ArtifactStore.putJson() of equal values is one artifact", () =>
  withDirectory(async (dir) => {
    const store = new ArtifactStore(dir);
    const ref = await store.putJson({ b: 1, a: [2] });
    deepStrictEqual(await store.putJson({ a: [2], b: 1 }), ref);
    deepStrictEqual(await store.getJson(ref), { a: [2], b: 1 });
  }));

Deno.test("ArtifactStore: concurrent puts of one content make one whole file", () =>
  withDirectory(async (dir) => {
    const bytes = new Uint8Array(300_000).fill(7);
    const stores = [new ArtifactStore(dir), new ArtifactStore(dir)];
    const refs = await Promise.all(Array.from({ length: 20 }, (_, i) => stores[i % 2]!.put(bytes)));
    strictEqual(new Set(refs.map((ref) => ref.sha256)).size, 1);
    deepStrictEqual(await stores[0]!.get(refs[0]!), bytes);
    deepStrictEqual(await names(`${dir}/tmp`), []);
    deepStrictEqual(await names(`${dir}/${refs[0]!.sha256.slice(0, 2)}`), [refs[0]!.sha256]);
  }));

Deno.test("ArtifactStore.get() names a damaged file; the next put fixes it", () =>
  withDirectory(async (dir) => {
    const store = new ArtifactStore(dir);
    const ref = await store.put(bytesOf("a batch of tokens"));
    const damage: [() => Promise<void>, RegExp][] = [
      [() => Deno.writeTextFile(store.path(ref), "a batch"), /because it has 7 bytes, not 17/],
      [
        () => Deno.writeTextFile(store.path(ref), "A batch of tokens"),
        /because its sha256 is [0-9a-f]{64}/,
      ],
      [() => Deno.remove(store.path(ref)), /because it is missing/],
    ];
    for (const [harm, message] of damage) {
      await harm();
      await rejects(new ArtifactStore(dir).get(ref), (error: LostRecordError) => {
        deepStrictEqual([error.code, error.retryable, error.facts.path], [
          "lost_record",
          false,
          store.path(ref),
        ]);
        match(error.message, message);
        match(error.message, new RegExp(`expected 17 bytes with sha256 ${ref.sha256}`));
        return true;
      });
      await new ArtifactStore(dir).put(bytesOf("a batch of tokens"));
      deepStrictEqual(await new ArtifactStore(dir).get(ref), bytesOf("a batch of tokens"));
    }
  }));

Deno.test("ArtifactStore.get() answers a copy: altering it harms nobody", () =>
  withDirectory(async (dir) => {
    const store = new ArtifactStore(dir);
    const ref = await store.put(bytesOf("abc"));
    for (let i = 0; i < 3; i++) (await store.get(ref)).fill(0);
    deepStrictEqual(await store.get(ref), bytesOf("abc"));
  }));

Deno.test("ArtifactStore keeps the most recently read bytes, within its bound", () =>
  withDirectory(async (dir) => {
    const store = new ArtifactStore(dir, { cache_bytes: 40 });
    const refs = [];
    for (let i = 0; i < 5; i++) refs.push(await store.put(new Uint8Array(10).fill(i)));
    const large = await store.put(new Uint8Array(11));
    for (const ref of refs.slice(0, 4)) await store.get(ref);
    await store.get(refs[0]!);
    await store.get(refs[4]!); // Pushes out the one that was read longest ago: 1.
    await store.get(large); // More than a quarter of the bound: never kept.
    await Deno.remove(dir, { recursive: true });
    const kept = await Promise.all(
      [...refs, large].map((ref) => store.get(ref).then(() => true, () => false)),
    );
    deepStrictEqual(kept, [true, false, true, true, true, false]);
  }));

Deno.test("ArtifactStore removes temporary files after an hour, and no others", () =>
  withDirectory(async (dir) => {
    const clock = new ManualClock(Date.now());
    await Deno.mkdir(`${dir}/tmp`, { recursive: true });
    const stale = `${dir}/tmp/7.00000000-0000-4000-8000-000000000000`;
    const fresh = `8.${crypto.randomUUID()}`;
    await Deno.writeTextFile(stale, "torn");
    await Deno.utime(stale, new Date(), new Date(clock.now() - 3_601_000));
    await Deno.writeTextFile(`${dir}/tmp/${fresh}`, "being written");
    await Deno.utime(`${dir}/tmp/${fresh}`, new Date(), new Date(clock.now() - 3_599_000));
    await new ArtifactStore(dir, { clock }).put(bytesOf("abc"));
    deepStrictEqual(await names(`${dir}/tmp`), [fresh]);
  }));

Deno.test("ArtifactStore.put() names a full disk, leaves no part, and works later", () =>
  withDirectory(async (dir) => {
    let full = true;
    const writeFile = async (path: string, bytes: Uint8Array) => {
      await Deno.writeFile(path, full ? bytes.subarray(0, 2) : bytes);
      if (full) {
        throw Object.assign(new Error("No space left on device (os error 28)"), { code: "ENOSPC" });
      }
    };
    const store = new ArtifactStore(dir, { writeFile });
    await rejects(store.put(bytesOf("abcdef")), (error: InfrastructureError) => {
      deepStrictEqual([error.code, error.retryable], ["infrastructure", false]);
      match(
        error.message,
        /^Cannot write an artifact of 6 bytes because .*artifacts is full: \d+ bytes free\. Free/,
      );
      return true;
    });
    deepStrictEqual(await names(`${dir}/tmp`), []);
    full = false;
    deepStrictEqual(await store.get(await store.put(bytesOf("abcdef"))), bytesOf("abcdef"));
  }));

Deno.test("ArtifactStore: a directory that cannot be made is named, and works once it can", () =>
  withDirectory(async (dir) => {
    await Deno.writeTextFile(dir, "a file is in the way");
    const store = new ArtifactStore(dir);
    await rejects(store.put(bytesOf("abc")), (error: InfrastructureError) => {
      strictEqual(error.code, "infrastructure");
      match(
        error.message,
        new RegExp(`^Cannot write an artifact of 3 bytes because ${dir} does not allow it`),
      );
      return true;
    });
    await Deno.remove(dir);
    deepStrictEqual(await store.get(await store.put(bytesOf("abc"))), bytesOf("abc"));
  }));

Deno.test("ArtifactStore.path() refuses every name that is not a sha256", async () => {
  await rejects(
    new ArtifactStore("/nowhere").get({ sha256: "../../etc/passwd", bytes: 1 }),
    /is not 64 hexadecimal digits/,
  );
});
