import { deepStrictEqual, notStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { type ArtifactRef, Optimizer, type Policy } from "../../data/mod.ts";
import { ArtifactStore, ManualClock, RedoDriftError, WorkerLostError } from "../../engine/mod.ts";
import {
  type Caller,
  FakeTrainer,
  type Loss,
  PolicyTrainer,
  type VersionNote,
  writeFakeModel,
} from "../../workers/mod.ts";

const optimizer = Optimizer.parse({ lr: 0.1 });

type Recorded = { kind: string; key: string; value: unknown };

/** A trainer over fake ranks, with the rows that stages would have recorded. */
class Bench {
  readonly dir = Deno.makeTempDirSync({ prefix: "policy_trainer_" });
  readonly artifacts = new ArtifactStore(`${this.dir}/artifacts`);
  readonly clock = new ManualClock();
  readonly rows: Recorded[] = [];
  readonly recoveries: Record<string, unknown>[] = [];
  ranks = new FakeTrainer({ artifacts: this.artifacts });
  trainer = this.opened();

  /** The trainer of a new engine: it knows what is recorded. */
  opened(): PolicyTrainer {
    const numerics = (micro_batch_tokens_max: number) => this.ranks.numerics(micro_batch_tokens_max);
    const { ranks: operator, artifacts, clock, rows: recorded } = this;
    return this.trainer = new PolicyTrainer({ operator, artifacts, clock, numerics, recorded });
  }

  caller(key: string): Caller {
    const record = (_: "recovery", at: string, value: unknown) => {
      this.recoveries.push({ at, ...value as Record<string, unknown> });
      return Promise.resolve();
    };
    return { key, attempt: 1, record };
  }

  async base(): Promise<Policy> {
    await writeFakeModel(`${this.dir}/model`, 0.5);
    return this.#kept(await this.trainer.base(`${this.dir}/model`, optimizer, this.caller("base")));
  }

  async batch(n: number): Promise<ArtifactRef> {
    return await this.artifacts.putJson({ kind: "supervised", rows: [], temperature: n + 1, updates: [[0], [1]] });
  }

  async train(policy: Policy, n: number): Promise<Policy> {
    const work = { policy, batch: await this.batch(n), loss: await this.batch(0), optimizer };
    return this.#kept(await this.trainer.train({ ...work, micro_batch_tokens_max: 64 }, this.caller(`train#${n}`)));
  }

  async save(policy: Policy): Promise<void> {
    const value = await this.trainer.save(policy, `${this.dir}/checkpoints/${policy.number}`, this.caller("save"));
    this.rows.push({ kind: "note/checkpoint", key: policy.version, value });
  }

  async digest(policy: Policy): Promise<string> {
    return (await this.trainer.publish(policy, `${this.dir}/out`, this.caller("publish"))).digest;
  }

  #kept({ policy, note }: { policy: Policy; note: VersionNote }): Policy {
    this.rows.push({ kind: "note/version", key: policy.version, value: note });
    return policy;
  }

  ops(): string {
    return this.ranks.calls.map(({ op }) => op).join(" ");
  }
}

/** base -> 1 -> 2 (checkpoint) -> 3 -> 4, and the weights' digest of version 4. */
async function fourVersions(bench: Bench): Promise<{ versions: Policy[]; digest: string }> {
  const versions = [await bench.base()];
  for (let n = 1; n <= 4; n++) {
    versions.push(await bench.train(versions.at(-1)!, n));
    if (n === 2) await bench.save(versions[2]!);
  }
  return { versions, digest: await bench.digest(versions[4]!) };
}

Deno.test("PolicyTrainer: the first load of the base is a start, not a recovery", async () => {
  const bench = new Bench();
  await bench.train(await bench.base(), 1);
  strictEqual(bench.ops(), "inspect_model train load train");
  deepStrictEqual(bench.recoveries, []);
});

Deno.test("PolicyTrainer: versions form a chain that names parent, batch and numerics", async () => {
  const bench = new Bench();
  const base = await bench.base();
  const [one, other] = [await bench.train(base, 1), await bench.train(base, 2)];
  notStrictEqual(one.version, other.version);
  strictEqual((await bench.train(base, 1)).version, one.version);
  const record = await bench.artifacts.getJson(one.record) as Record<string, unknown>;
  deepStrictEqual([record.parent, (record.numerics as { engine: string }).engine], [base.version, "fake"]);
});

Deno.test("PolicyTrainer: ranks that hold nothing get the newest checkpoint and the batches after it, bit for bit", async () => {
  const bench = new Bench();
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

Deno.test("PolicyTrainer: without a checkpoint the chain is redone from the base", async () => {
  const bench = new Bench();
  const base = await bench.base();
  const two = await bench.train(await bench.train(base, 1), 2);
  const digest = await bench.digest(two);
  bench.ranks.forget();
  strictEqual(await bench.digest(two), digest);
  const { cause, action, batches_redone } = bench.recoveries[0]!;
  deepStrictEqual([cause, action, batches_redone], ["worker_lost", "load_base", 2]);
});

Deno.test("PolicyTrainer: a recovery has the root cause of the loss and counts from it, with or without a version to bring back", async () => {
  const bench = new Bench();
  const losses: Loss[] = [{ cause: "out_of_memory", seconds: 7 }];
  Object.assign(bench.ranks, { takeLoss: () => losses.shift() ?? null });
  const base = await bench.base();
  const one = await bench.train(base, 1);
  bench.ranks.forget();
  losses.push({ cause: "no_progress", seconds: 9 });
  await bench.digest(one);
  const [restarted, redone] = bench.recoveries;
  const nothing = { version: null, batches_redone: 0 };
  deepStrictEqual(restarted, { at: "base", cause: "out_of_memory", action: "restart", seconds: 7, ...nothing });
  const { version } = one;
  const loaded = { action: "load_base", version, batches_redone: 1 };
  deepStrictEqual(redone, { at: "publish", cause: "no_progress", seconds: 9, ...loaded });
  strictEqual(bench.recoveries.length, 2);
});

Deno.test("PolicyTrainer: a dropped checkpoint is not loaded, neither now nor by the next engine", async () => {
  const bench = new Bench();
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

Deno.test("PolicyTrainer: an older version is brought back as `other_version`, and the newest one after it", async () => {
  const bench = new Bench();
  const { versions, digest } = await fourVersions(bench);
  await bench.digest(versions[3]!);
  strictEqual(await bench.digest(versions[4]!), digest);
  deepStrictEqual(bench.recoveries.map(({ cause, batches_redone }) => [cause, batches_redone]), [
    ["other_version", 1],
    ["other_version", 2],
  ]);
});

Deno.test("PolicyTrainer: a redone loss that differs by one bit is redo_drift, and the weights are not used", async () => {
  const bench = new Bench();
  const { versions } = await fourVersions(bench);
  const row = bench.rows.find(({ key }) => key === versions[3]!.version)!;
  const bits = new Float64Array([(row.value as VersionNote).steps[1]!.loss]);
  new Uint8Array(bits.buffer)[0]! ^= 1;
  row.value = structuredClone(row.value);
  (row.value as VersionNote).steps[1]!.loss = bits[0]!;
  bench.ranks.forget();
  bench.opened();
  await rejects(bench.digest(versions[4]!), (error: RedoDriftError) => {
    strictEqual(error.code, "redo_drift");
    strictEqual(error.facts.version, versions[3]!.version);
    return true;
  });
  strictEqual(bench.ops().split(" ").filter((op) => op === "publish").length, 2); // The first one, and the refused one.
});

Deno.test("PolicyTrainer: ranks lost in the middle of materialising fail the call; the next one materialises from the start", async () => {
  const bench = new Bench();
  const { versions, digest } = await fourVersions(bench);
  bench.ranks.forget();
  let redone = 0;
  bench.ranks.hook = ({ op }, moment) => {
    if (op !== "train" || moment !== "done" || ++redone !== 1) return;
    bench.ranks.forget();
    throw new WorkerLostError("Cannot go on as rank 0 was killed on purpose");
  };
  await rejects(bench.digest(versions[4]!), WorkerLostError);
  deepStrictEqual(bench.recoveries, []);
  strictEqual(await bench.digest(versions[4]!), digest);
  deepStrictEqual(bench.recoveries.map(({ batches_redone }) => batches_redone), [2]);
});

Deno.test("PolicyTrainer: ranks that are lost between materialising and working are an infrastructure error, tried again later", async () => {
  const bench = new Bench();
  const { versions } = await fourVersions(bench);
  bench.ranks.forget();
  bench.ranks.hook = ({ op }, moment) => {
    if (op === "publish" && moment === "begin") bench.ranks.forget();
  };
  await rejects(bench.digest(versions[4]!), { code: "infrastructure", retryable: true });
});

Deno.test("PolicyTrainer: two calls at once never mix, whatever version each of them needs", async () => {
  const bench = new Bench();
  const { versions, digest } = await fourVersions(bench);
  const [four, two, again] = await Promise.all([4, 2, 4].map((n) => bench.digest(versions[n]!)));
  deepStrictEqual([four, again], [digest, digest]);
  notStrictEqual(two, digest);
});

Deno.test("PolicyTrainer: trained steps are asked for again by their names, and not trained twice", async () => {
  const bench = new Bench();
  const base = await bench.base();
  const one = await bench.train(base, 1);
  const digest = await bench.digest(one);
  strictEqual((await bench.train(base, 1)).version, one.version);
  strictEqual(await bench.digest(one), digest);
});

Deno.test("PolicyTrainer: a version of another run is refused with its name", async () => {
  const [bench, other] = [new Bench(), new Bench()];
  const stranger = await other.train(await other.base(), 7);
  await rejects(bench.digest(stranger), { code: "bad_data", message: new RegExp(stranger.version.slice(0, 12)) });
  ok(!bench.ops().includes("load"));
});
