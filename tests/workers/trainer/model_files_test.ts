import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { Checkpoint, Publication, wholeCheckpoint } from "../../../workers/mod.ts";

const shard = (rank: number): Checkpoint => ({
  version: "v",
  dir: "/c/4",
  digest: "d",
  world_size: 2,
  files: [{ path: `state/${rank}`, sha256: "s", bytes: rank }],
});

Deno.test("wholeCheckpoint() has the files of every rank in rank order", () => {
  deepStrictEqual(wholeCheckpoint([shard(0), shard(1)]), {
    ...shard(0),
    files: [...shard(0).files, ...shard(1).files],
  });
});

Deno.test("wholeCheckpoint() of one rank is that rank's, and changes no shard", () => {
  const [zero, one] = [shard(0), shard(1)];
  deepStrictEqual(wholeCheckpoint([zero]), shard(0));
  wholeCheckpoint([zero, one]);
  deepStrictEqual([zero, one], [shard(0), shard(1)]);
});

Deno.test("Checkpoint and Publication refuse files without a hash, and unknown fields", () => {
  strictEqual(Checkpoint.safeParse(shard(0)).success, true);
  throws(() => Checkpoint.parse({ ...shard(0), files: [{ path: "a", bytes: 1 }] }));
  throws(() => Checkpoint.parse({ ...shard(0), rank: 0 }));
  const published = { version: "v", dir: "/p", digest: "d", tensors: [], files: [] };
  strictEqual(Publication.parse(published).base, undefined);
  throws(() => Publication.parse({ ...published, base: { dir: "/b" } }));
});
