import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import {
  ArtifactStore,
  Engine,
  type Outcome,
  SqliteStore,
  type Store,
} from "../../../engine/mod.ts";
import { MemoryStore } from "../../../testing/mod.ts";
import { digestOf } from "../../simulation/audit.ts";
import { type Ended, FULL, MEMORY_DIR, runThrough } from "../../crash/fake_lives.ts";
import { longValues } from "./long_values.ts";

/** Pages of a SQLite file that holds the head of one run. */
const EMPTY_PAGES = 8;
/** A plan whose journal takes some twenty pages more. */
const LONG = { ...FULL, times: 4, until: 4, lists: [3, 3] };

/** A disk with room for so many more files. */
class Disk {
  room = Infinity;
  written = 0;
  readonly write = async (path: string, bytes: Uint8Array): Promise<void> => {
    if (this.room-- <= 0) {
      throw Object.assign(new Error("No space left on device"), { code: "ENOSPC" });
    }
    this.written++;
    await Deno.writeFile(path, bytes);
  };
}

type Ran = {
  first: Outcome;
  last: Outcome;
  digest: unknown;
  starts: Map<string, number>;
  written: number;
};

/** Runs until there is no room for another artifact; then there is, and the run is resumed. */
async function runOnDisk(room: number): Promise<Ran> {
  const dir = await Deno.makeTempDir({ prefix: "disk-full-", dir: MEMORY_DIR });
  try {
    const [disk, starts, store] = [new Disk(), new Map<string, number>(), new MemoryStore()];
    const definition = longValues(starts);
    const execute = async () =>
      await new Engine({ store, artifacts: new ArtifactStore(dir, { writeFile: disk.write }) })
        .execute("run", definition.build({}));
    await new Engine({ store, artifacts: new ArtifactStore(dir) }).create(definition, {}, {
      id: "run",
    });
    disk.room = room;
    const first = await execute();
    disk.room = Infinity;
    const last = await execute();
    // A round that has moved to an artifact names it by what is also where its replay starts
    // reading.
    const digest = Object.entries(digestOf(store.rows("run"))).filter(([name]) =>
      name.startsWith("result")
    );
    return { first, last, digest, starts, written: disk.written };
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("a run that found the disk full at any artifact is resumed to its end", async () => {
  const calm = await runOnDisk(Infinity);
  strictEqual(calm.first.status, "done");
  ok(calm.written >= 6, `${calm.written} artifacts`);
  for (let room = 0; room < calm.written; room++) {
    const { first, last, digest, starts } = await runOnDisk(room);
    ok(first.status === "failed", `${room}: ${first.status}`);
    match(
      first.error.message,
      /the disk of .* is full: \d+ bytes free\. Free some space, then resume/,
    );
    // A difference is too long to print.
    const same = isDeepStrictEqual([last, digest], [calm.last, calm.digest]);
    ok(same, `room for ${room}: it ended otherwise`);
    for (const [key, count] of starts) {
      ok(count <= 2, `room for ${room}: '${key}' started ${count} times`);
    }
  }
});

Deno.test("a store that is full at any write stops the run, and loses nothing", async () => {
  const calm = await runThrough({ plan: FULL, open: always(new MemoryStore()) });
  for (let write = 1; write <= calm.watch.writes; write++) {
    const crashes = [{ write, moment: "full" as const }];
    const { outcome, digest, watch, lives } = await runThrough({
      plan: FULL,
      open: always(new MemoryStore()),
      crashes,
    });
    const where = `no room for write ${write}`;
    deepStrictEqual([outcome, digest, watch.again], [calm.outcome, calm.digest, []], where);
    ok(lives === 2 || write > calm.watch.writes - 3, `${where}: it did not stop`);
  }
});

Deno.test("a SQLite file that cannot grow stops the run, and loses nothing", async () => {
  const dir = await Deno.makeTempDir({ prefix: "disk-full-", dir: MEMORY_DIR });
  try {
    const calm = await runThrough({ plan: LONG, open: always(new MemoryStore()) });
    let stopped = 0;
    let finished = 0;
    for (let pages_max = EMPTY_PAGES + 2; finished < 3; pages_max++) {
      const { outcome, digest, lives, watch } = await runWithin({
        path: `${dir}/${pages_max}.db`,
        pages_max,
      });
      deepStrictEqual(
        [outcome, digest, watch.again],
        [calm.outcome, calm.digest, []],
        `${pages_max} pages`,
      );
      if (lives > 1) stopped++;
      else finished++;
    }
    ok(stopped >= 5, `${stopped} stops`);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

function always(store: Store): () => Store {
  return () => store;
}

/**
 * The first life's file may not grow beyond `pages_max`; the second finds that there is room again.
 */
async function runWithin({ path, pages_max }: { path: string; pages_max: number }): Promise<Ended> {
  let store: SqliteStore | undefined;
  const open = async (life: number) => {
    await store?.close();
    store = new SqliteStore(path, life === 0 ? { pages_max } : {});
    return store;
  };
  try {
    return await runThrough({ plan: LONG, open });
  } finally {
    await store?.close();
  }
}
