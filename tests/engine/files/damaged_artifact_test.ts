import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { ArtifactStore, Engine, type Outcome } from "../../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { MEMORY_DIR } from "../../crash/fake_lives.ts";
import { longValues } from "../stores/long_values.ts";

const DAMAGES: Record<string, { damage(path: string, bytes: Uint8Array): void; seen: RegExp }> = {
  torn: {
    damage: (path, bytes) => Deno.writeFileSync(path, bytes.subarray(0, bytes.length >> 1)),
    seen: /bytes, not/,
  },
  empty: {
    damage: (path) => Deno.writeFileSync(path, new Uint8Array()),
    seen: /it has 0 bytes, not/,
  },
  missing: { damage: (path) => Deno.removeSync(path), seen: /because it is missing/ },
  flipped: {
    damage: (path, bytes) => {
      const flipped = bytes.slice();
      flipped[flipped.length >> 1]! ^= 4;
      Deno.writeFileSync(path, flipped);
    },
    seen: /its sha256 is/,
  },
};

type Bench = {
  dir: string;
  starts: Map<string, number>;
  execute(store: MemoryStore): Promise<Outcome>;
};

async function withBench(body: (bench: Bench) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "damaged-", dir: MEMORY_DIR });
  const starts = new Map<string, number>();
  const definition = longValues(starts);
  const built = definition.build({});
  try {
    await body({
      dir,
      starts,
      // A new process reads files again: nothing is in its memory.
      async execute(store) {
        const engine = new Engine({ store, artifacts: new ArtifactStore(dir) });
        if (!(await store.head("run"))) await engine.create(definition, {}, { id: "run" });
        return await engine.execute("run", built);
      },
    });
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

function filesIn(dir: string): string[] {
  const folders = [...Deno.readDirSync(dir)].filter(({ name }) => name.length === 2);
  return folders.flatMap(({ name }) =>
    [...Deno.readDirSync(`${dir}/${name}`)].map((file) => `${dir}/${name}/${file.name}`)
  );
}

async function killedAt(bench: Bench, append: number): Promise<MemoryStore | null> {
  const store = new MemoryStore({ crash_after_appends: append });
  try {
    await bench.execute(store);
    return null;
  } catch (error) {
    if (!(error instanceof Crashed)) throw error;
    return store;
  }
}

/**
 * Resumes over a damaged file, puts the file back, resumes again. How the first ended: "done", or
 * the error's text.
 */
async function resumeOver(
  bench: Bench,
  { store, path, damage }: {
    store: MemoryStore;
    path: string;
    damage: (path: string, bytes: Uint8Array) => void;
  },
): Promise<{ first: string; second: Outcome }> {
  const bytes = Deno.readFileSync(path);
  damage(path, bytes);
  // Thrown where the damage is met before anything runs: the run is interrupted then, not failed.
  const first = await bench.execute(store.restarted()).then(
    (outcome) => outcome.status === "failed" ? outcome.error.message : outcome.status,
    (error: Error) => error.message,
  );
  Deno.writeFileSync(path, bytes);
  return {
    first,
    second: await bench.execute(store.restarted()),
  };
}

Deno.test("a run names a damaged artifact, and resumes once it is restored", async () => {
  let calm: Outcome | undefined;
  await withBench(async (bench) => void (calm = await bench.execute(new MemoryStore())));
  strictEqual(calm!.status, "done");
  const noticed = new Set<string>();
  for (let append = 1; append < 30; append++) {
    for (const [name, { damage, seen }] of Object.entries(DAMAGES)) {
      const over = await withKilled(append, async (bench, store) => {
        const files = filesIn(bench.dir);
        const path = files[append % files.length]!;
        const { first, second } = await resumeOver(bench, { store, path, damage });
        const where = `${name} after append ${append}`;
        if (first !== "done") {
          match(first, seen, where);
          ok(
            first.includes(path) && /Restore the file from a copy/.test(first),
            `${where}: ${first}`,
          );
          noticed.add(name);
        }
        deepStrictEqual(second, calm, where);
        // Once each, and once more for a body that the kill had interrupted.
        for (const [key, count] of bench.starts) {
          ok(count <= 3, `${where}: '${key}' started ${count} times`);
        }
      });
      if (over) return deepStrictEqual([...noticed].sort(), Object.keys(DAMAGES).sort());
    }
  }
  throw new Error("the run has more appends than this test kills");
});

/** True if the run has fewer appends, so that nothing was killed. */
async function withKilled(
  append: number,
  body: (bench: Bench, store: MemoryStore) => Promise<void>,
): Promise<boolean> {
  let over = false;
  await withBench(async (bench) => {
    const store = await killedAt(bench, append);
    over = store === null;
    if (store && filesIn(bench.dir).length > 0) await body(bench, store);
  });
  return over;
}
