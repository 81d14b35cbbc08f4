import { deepStrictEqual, notStrictEqual, rejects, strictEqual } from "node:assert/strict";
import {
  ArtifactStore,
  type EngineError,
  type RemadeDifferentlyError,
  WorkerLostError,
} from "../../../engine/mod.ts";
import type { Caller, Loss, VersionNote } from "../../../workers/mod.ts";
import { FakeTrainer } from "../../../testing/mod.ts";
import { fourVersions, TrainerBench } from "./trainer_bench.ts";

Deno.test("Materialiser loads the newest checkpoint and redoes later batches exactly", async () => {
  const bench = new TrainerBench();
  const { versions, digest } = await fourVersions(bench);
  bench.ranks = new FakeTrainer({ artifacts: bench.artifacts });
  bench.opened();
  strictEqual(await bench.digest(versions[4]!), digest);
  strictEqual(bench.ops(), "publish load train train publish");
  strictEqual((bench.ranks.calls[1]!.args as { version: string }).version, versions[2]!.version);
  const { cause, action, batches_redone } = bench.recoveries[0]!;
  deepStrictEqual([cause, action, batches_redone], ["engine_lost", "load_checkpoint", 2]);
  strictEqual(bench.recoveries.length, 1);
});

Deno.test("Materialiser: without a checkpoint the chain is redone from the base", async () => {
  const bench = new TrainerBench();
  const base = await bench.base();
  const two = await bench.train(await bench.train(base, 1), 2);
  const digest = await bench.digest(two);
  bench.ranks.forget();
  strictEqual(await bench.digest(two), digest);
  const { cause, action, batches_redone } = bench.recoveries[0]!;
  deepStrictEqual([cause, action, batches_redone], ["worker_lost", "load_base", 2]);
});

Deno.test("Materialiser: a recovery has the loss's root cause and counts from it", async () => {
  const bench = new TrainerBench();
  const losses: Loss[] = [{ cause: "out_of_memory", seconds: 7 }];
  Object.assign(bench.ranks, { takeLoss: () => losses.shift() ?? null });
  const base = await bench.base();
  const one = await bench.train(base, 1);
  bench.ranks.forget();
  losses.push({ cause: "no_progress", seconds: 9 });
  await bench.digest(one);
  const [restarted, redone] = bench.recoveries;
  const nothing = { version: null, batches_redone: 0 };
  deepStrictEqual(restarted, {
    at: "base",
    cause: "out_of_memory",
    action: "restart",
    seconds: 7,
    ...nothing,
  });
  const { version } = one;
  const loaded = { action: "load_base", version, batches_redone: 1 };
  deepStrictEqual(redone, { at: "publish", cause: "no_progress", seconds: 9, ...loaded });
  strictEqual(bench.recoveries.length, 2);
});

Deno.test("Materialiser never loads a dropped checkpoint", async () => {
  const bench = new TrainerBench();
  const { versions, digest } = await fourVersions(bench);
  await bench.save(versions[4]!);
  bench.trainer.dropped(versions[4]!.version);
  bench.rows.push({ kind: "note/checkpoint_dropped", key: versions[4]!.version, value: {} });
  for (const engine of [() => bench.trainer, () => bench.opened()]) {
    engine();
    bench.ranks.forget();
    strictEqual(await bench.digest(versions[4]!), digest);
  }
  deepStrictEqual(bench.recoveries.map(({ batches_redone }) => batches_redone), [2, 2]);
});

Deno.test("Materialiser restores an older version as `other_version`", async () => {
  const bench = new TrainerBench();
  const { versions, digest } = await fourVersions(bench);
  await bench.digest(versions[3]!);
  strictEqual(await bench.digest(versions[4]!), digest);
  deepStrictEqual(bench.recoveries.map(({ cause, batches_redone }) => [cause, batches_redone]), [
    ["other_version", 1],
    ["other_version", 1], // From the version that is held, not from the checkpoint before it.
  ]);
});

Deno.test("Materialiser: a redone loss that differs by one bit is redo_drift", async () => {
  const bench = new TrainerBench();
  const { versions } = await fourVersions(bench);
  const row = bench.rows.find(({ key }) => key === versions[3]!.version)!;
  const bits = new Float64Array([(row.value as VersionNote).steps[1]!.loss!]);
  new Uint8Array(bits.buffer)[0]! ^= 1;
  row.value = structuredClone(row.value);
  (row.value as VersionNote).steps[1]!.loss = bits[0]!;
  bench.ranks.forget();
  bench.opened();
  await rejects(bench.digest(versions[4]!), (error: RemadeDifferentlyError) => {
    strictEqual(error.code, "redo_drift");
    strictEqual(error.facts.version, versions[3]!.version);
    return true;
  });
  // The first one, and the refused one.
  strictEqual(bench.ops().split(" ").filter((op) => op === "publish").length, 2);
});

Deno.test("Materialiser: the call after ranks were lost midway starts again", async () => {
  const bench = new TrainerBench();
  const { versions, digest } = await fourVersions(bench);
  bench.ranks.forget();
  let redone = 0;
  bench.ranks.hook = ({ op }, moment) => {
    if (op !== "train" || moment !== "done" || ++redone !== 1) return;
    bench.ranks.forget();
    throw new WorkerLostError("Cannot continue because rank 0 was killed on purpose");
  };
  await rejects(bench.digest(versions[4]!), WorkerLostError);
  deepStrictEqual(bench.recoveries, []);
  strictEqual(await bench.digest(versions[4]!), digest);
  deepStrictEqual(bench.recoveries.map(({ batches_redone }) => batches_redone), [2]);
});

Deno.test("Materialiser: ranks lost right after it are an infrastructure error", async () => {
  const bench = new TrainerBench();
  const { versions } = await fourVersions(bench);
  bench.ranks.forget();
  bench.ranks.hook = ({ op }, moment) => {
    if (op === "publish" && moment === "begin") bench.ranks.forget();
  };
  await rejects(bench.digest(versions[4]!), { code: "infrastructure", retryable: true });
});

/** What damage may look like, done to a checkpoint's directory. */
const DAMAGE: Record<string, (dir: string) => Promise<void>> = {
  "a flipped bit": async (dir) => {
    const bytes = await Deno.readFile(`${dir}/weights.json`);
    bytes[3]! ^= 1;
    await Deno.writeFile(`${dir}/weights.json`, bytes);
  },
  "a torn file": (dir) => Deno.truncate(`${dir}/weights.json`, 2),
  "a missing file": (dir) => Deno.remove(`${dir}/weights.json`),
  "a missing directory": (dir) => Deno.remove(dir, { recursive: true }),
};

for (const [name, damage] of Object.entries(DAMAGE)) {
  Deno.test(`Materialiser sets a checkpoint with ${name} aside and uses an older one`, async () => {
    const bench = new TrainerBench();
    const { versions, digest } = await fourVersions(bench);
    await bench.save(versions[4]!);
    await damage(`${bench.dir}/checkpoints/4`);
    bench.restarted();
    strictEqual(await bench.digest(versions[4]!), digest);
    const recoveries = bench.recoveries.map(({ action, batches_redone }) =>
      `${action} ${batches_redone}`
    );
    deepStrictEqual(recoveries, ["set_aside 0", "load_checkpoint 2"]);
    const [row] = bench.rows.filter(({ kind }) => kind === "note/checkpoint_set_aside");
    const { file, expected, found, to } = row!.value as Record<string, string>;
    strictEqual(file, "weights.json");
    notStrictEqual(found, expected);
    strictEqual(await Deno.stat(to!).then(() => true, () => false), name !== "a missing directory");
    bench.restarted();
    strictEqual(await bench.digest(versions[4]!), digest);
    deepStrictEqual(bench.recoveries.length, 3); // The next engine does not look at it again.
  });
}

Deno.test("Materialiser redoes the chain from the base without a whole checkpoint", async () => {
  const bench = new TrainerBench();
  const { versions, digest } = await fourVersions(bench);
  await bench.save(versions[4]!);
  for (const number of [2, 4]) await DAMAGE["a flipped bit"]!(`${bench.dir}/checkpoints/${number}`);
  bench.restarted();
  strictEqual(await bench.digest(versions[4]!), digest);
  const recoveries = bench.recoveries.map(({ action, batches_redone }) =>
    `${action} ${batches_redone}`
  );
  deepStrictEqual(recoveries, ["set_aside 0", "set_aside 0", "load_base 4"]);
});

Deno.test("Materialiser: a damaged batch fails the redo with the artifact's name", async () => {
  const bench = new TrainerBench();
  const { versions } = await fourVersions(bench);
  const torn = await bench.batch(4);
  await Deno.truncate(bench.artifacts.path(torn), 5);
  const artifacts = new ArtifactStore(bench.artifacts.dir);
  Object.assign(bench, { artifacts });
  bench.restarted();
  await rejects(bench.digest(versions[4]!), ({ message }: Error) => {
    return message.includes(torn.sha256) && message.includes("5 bytes");
  });
});

Deno.test("Materialiser redoes batches on their own world size, then continues", async () => {
  const bench = new TrainerBench();
  bench.restarted(2);
  const { versions, digest } = await fourVersions(bench);
  bench.restarted(1);
  strictEqual(await bench.digest(versions[4]!), digest);
  deepStrictEqual(bench.others!.map(({ calls }) => calls.map(({ op }) => op).join(" ")), [
    "load train train save",
  ]);
  strictEqual(bench.ops(), "publish load publish");
  const handed = bench.rows.filter(({ kind }) => kind === "note/checkpoint").at(-1)!;
  deepStrictEqual([handed.key, (handed.value as { world_size: number }).world_size], [
    versions[4]!.version,
    2,
  ]);
  strictEqual(bench.recoveries.at(-1)!.batches_redone, 2);
  const five = await bench.train(versions[4]!, 5);
  const record = await bench.artifacts.getJson(five.record) as { numerics: { world_size: number } };
  strictEqual(record.numerics.world_size, 1);
  const after = await bench.digest(five);
  bench.restarted(1);
  strictEqual(await bench.digest(five), after);
  strictEqual(bench.others!.length, 1); // From the checkpoint between the two sizes on.
});

Deno.test("Materialiser redoes a chain of two world sizes from the base", async () => {
  const bench = new TrainerBench();
  bench.restarted(2);
  const one = await bench.train(await bench.base(), 1);
  bench.restarted(1);
  const two = await bench.train(one, 2);
  const digest = await bench.digest(two);
  bench.rows.splice(0, Infinity, ...bench.rows.filter(({ kind }) => kind !== "note/checkpoint"));
  bench.restarted(2);
  strictEqual(await bench.digest(two), digest);
  deepStrictEqual(bench.ops(), "publish load train save load publish");
  deepStrictEqual(bench.others!.at(-1)!.calls.map(({ op }) => op), ["load", "train", "save"]);
});

Deno.test("Materialiser: a handed-over checkpoint is `writing` until recorded", async () => {
  const bench = new TrainerBench();
  bench.restarted(2);
  const one = await bench.train(await bench.base(), 1);
  bench.restarted(1);
  const two = await bench.train(one, 2);
  bench.rows.splice(0, Infinity, ...bench.rows.filter(({ kind }) => kind !== "note/checkpoint"));
  bench.restarted(2);
  const seen: [string, boolean][] = [];
  bench.ranks.hook = ({ op, args }, moment) => {
    if (op === "save" && moment === "begin") {
      seen.push(["begun", bench.trainer.writing.has((args as { dir: string }).dir)]);
    }
  };
  const { record, ...caller } = bench.caller("publish");
  const watched: Caller["record"] = async (kind, key, value) => {
    if (kind === "note/checkpoint") {
      seen.push(["recording", bench.trainer.writing.has((value as { dir: string }).dir)]);
    }
    await record(kind, key, value);
  };
  await bench.trainer.publish(two, `${bench.dir}/out`, { ...caller, record: watched });
  // Of version 1 by these ranks, of version 2 by the one rank that it was trained on.
  deepStrictEqual(seen, [["begun", true], ["recording", true], ["recording", true]]);
  strictEqual(bench.trainer.writing.size, 0);
});

Deno.test("Materialiser never rolls back silently without the old world size", async () => {
  const bench = new TrainerBench();
  bench.restarted(2);
  const { versions } = await fourVersions(bench);
  bench.others = null;
  bench.restarted(1);
  await rejects(bench.digest(versions[4]!), ({ message, retryable }: EngineError) => {
    return !retryable && message.includes("batches 3 to 4") && message.includes("on 2 ranks") &&
      message.includes("the machine is smaller") && message.includes("fork RUN --round 2");
  });
  // At a checkpoint no batch is left behind.
  strictEqual(await bench.digest(versions[2]!) !== "", true);
});
