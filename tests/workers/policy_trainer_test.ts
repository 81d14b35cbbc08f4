import { deepStrictEqual, notStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { type ArtifactRef, Optimizer, type Policy } from "../../data/mod.ts";
import {
  ArtifactStore,
  type EngineError,
  InfrastructureError,
  ManualClock,
  OutOfMemoryError,
  RemadeDifferentlyError,
  WorkerLostError,
} from "../../engine/mod.ts";
import {
  type Caller,
  type CallOptions,
  type Loss,
  type Operator,
  PolicyTrainer,
  type VersionNote,
} from "../../workers/mod.ts";
import { FakeTrainer, writeFakeModel } from "../../testing/mod.ts";

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
  allowReplan = true;
  /** Trainers on another number of ranks that were started, as they are asked for; null: none can be. */
  others: FakeTrainer[] | null = [];
  trainer = this.opened();

  /** The trainer of a new engine: it knows what is recorded. */
  opened(): PolicyTrainer {
    const numerics = (micro_batch_tokens_max: number) => this.ranks.numerics(micro_batch_tokens_max);
    const { artifacts, clock, rows: recorded, allowReplan } = this;
    const checkpointsDir = `${this.dir}/checkpoints`;
    const operator: Operator = Object.assign(this.ranks, { withRanks: (ranks: number) => this.#withRanks(ranks) });
    const options = { operator, artifacts, clock, numerics, recorded, checkpointsDir, allowReplan };
    return this.trainer = new PolicyTrainer(options);
  }

  /** New ranks, which hold nothing, with a new engine. */
  restarted(ranks = 1): PolicyTrainer {
    this.ranks = new FakeTrainer({ artifacts: this.artifacts, ranks });
    return this.opened();
  }

  #withRanks(ranks: number): Promise<Operator & { end(): Promise<void> }> {
    if (this.others === null) {
      return Promise.reject(new InfrastructureError("Cannot start because the machine is smaller"));
    }
    const started = new FakeTrainer({ artifacts: this.artifacts, ranks });
    this.others.push(started);
    return Promise.resolve(Object.assign(started, { end: () => Promise.resolve() }));
  }

  kinds(): string[] {
    return this.rows.map(({ kind }) => kind);
  }

  caller(key: string): Caller {
    const record = (kind: string, at: string, value: unknown) => {
      if (kind === "recovery") this.recoveries.push({ at, ...value as Record<string, unknown> });
      else this.rows.push({ kind, key: at, value });
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
    const place = { dir: `${this.dir}/checkpoints/${policy.number}`, round: policy.number };
    const value = await this.trainer.save(policy, place, this.caller("save"));
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
    ["other_version", 1], // From the version that is held, not from the checkpoint before it.
  ]);
});

Deno.test("PolicyTrainer: a redone loss that differs by one bit is redo_drift, and the weights are not used", async () => {
  const bench = new Bench();
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
    throw new WorkerLostError("Cannot continue because rank 0 was killed on purpose");
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
  Deno.test(`PolicyTrainer: with ${name} a checkpoint is set aside, the one before it is used, and more is redone`, async () => {
    const bench = new Bench();
    const { versions, digest } = await fourVersions(bench);
    await bench.save(versions[4]!);
    await damage(`${bench.dir}/checkpoints/4`);
    bench.restarted();
    strictEqual(await bench.digest(versions[4]!), digest);
    const told = bench.recoveries.map(({ action, batches_redone }) => `${action} ${batches_redone}`);
    deepStrictEqual(told, ["set_aside 0", "load_checkpoint 2"]);
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

Deno.test("PolicyTrainer: when every checkpoint is damaged the chain is redone from the base", async () => {
  const bench = new Bench();
  const { versions, digest } = await fourVersions(bench);
  await bench.save(versions[4]!);
  for (const number of [2, 4]) await DAMAGE["a flipped bit"]!(`${bench.dir}/checkpoints/${number}`);
  bench.restarted();
  strictEqual(await bench.digest(versions[4]!), digest);
  const told = bench.recoveries.map(({ action, batches_redone }) => `${action} ${batches_redone}`);
  deepStrictEqual(told, ["set_aside 0", "set_aside 0", "load_base 4"]);
});

Deno.test("PolicyTrainer: a damaged batch fails the redo with the artifact's name", async () => {
  const bench = new Bench();
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

/** Ranks that have room for micro-batches of up to `room` tokens, and say how they cut. */
function withRoom(bench: Bench, room: number, { ops = ["train", "score"], cut = {} } = {}): void {
  bench.ranks.hook = ({ op, args }, moment) => {
    const { micro_batch_tokens_max: tokens = 0 } = args as { micro_batch_tokens_max?: number };
    if (moment !== "begin" || !ops.includes(op) || tokens <= room) return;
    bench.ranks.forget();
    throw new OutOfMemoryError("CUDA out of memory", { run: "a", exception: "OutOfMemoryError", signal: null });
  };
  const { ranks } = bench;
  const call = ranks.call.bind(ranks);
  ranks.call = (op, args, options: CallOptions) => {
    const at = { rank: 0, phase: "no_room", done: 0, total: null };
    if (ops.includes(op)) options.onProgress?.({ ...at, metrics: cut });
    return call(op, args, options);
  };
}

Deno.test("PolicyTrainer: without room on the device the micro-batch is halved, recorded, and stays so", async () => {
  const bench = new Bench();
  const base = await bench.base();
  withRoom(bench, 20);
  const one = await bench.train(base, 1);
  const expected = [[64, 32], [32, 16]].map(([from, to]) => (
    { round: null, cause: "out_of_memory", field: "trainer.micro_batch_tokens_max", from, to }
  ));
  const replans = () => bench.rows.filter(({ kind }) => kind === "note/replan").map(({ value }) => value);
  deepStrictEqual(replans(), expected);
  const record = await bench.artifacts.getJson(one.record) as { numerics: { micro_batch_tokens_max: number } };
  strictEqual(record.numerics.micro_batch_tokens_max, 16);
  const two = await bench.train(one, 2);
  const digest = await bench.digest(two);
  bench.restarted();
  strictEqual(await bench.digest(two), digest);
  await bench.train(two, 3);
  const trained = bench.ranks.calls.filter(({ op }) => op === "train")
    .map(({ args }) => (args as { micro_batch_tokens_max: number }).micro_batch_tokens_max);
  deepStrictEqual([...new Set(trained)], [16]);
  strictEqual(replans().length, 2);
});

Deno.test("PolicyTrainer: versions from before a replan are redone with their own micro-batch", async () => {
  const bench = new Bench();
  const one = await bench.train(await bench.base(), 1);
  withRoom(bench, 20);
  // The loss of the ranks redoes batch 1 too: at 64 tokens, which had room when it was trained.
  bench.ranks.hook = null;
  const lost = new OutOfMemoryError("CUDA out of memory", { exception: "OutOfMemoryError", signal: null });
  let failures = 1;
  bench.ranks.hook = ({ op, args }, moment) => {
    const { from } = args as { from?: string };
    if (op !== "train" || moment !== "begin" || from !== one.version || failures-- <= 0) return;
    bench.ranks.forget();
    throw lost;
  };
  await bench.train(one, 2);
  const trained = bench.ranks.calls.filter(({ op }) => op === "train")
    .map(({ args }) => (args as { micro_batch_tokens_max: number }).micro_batch_tokens_max);
  deepStrictEqual(trained.slice(-4), [64, 32, 64, 32]); // lost, not resident, redone, trained
});

Deno.test("PolicyTrainer: what a rank says of its cut decides the half, and one sequence that does not fit ends it", async () => {
  const bench = new Bench();
  const base = await bench.base();
  withRoom(bench, 10, { cut: { longest_tokens: 18, micro_batch_tokens: 40 } });
  await rejects(bench.train(base, 1), ({ message, retryable }: EngineError) => {
    return message.includes("one sequence of 18 tokens does not fit") && !retryable;
  });
  const to = bench.rows.filter(({ kind }) => kind === "note/replan").map(({ value }) => (value as { to: number }).to);
  deepStrictEqual(to, [20, 18]);
});

Deno.test("PolicyTrainer: recovery.allow_replan: false stops with the command that goes on", async () => {
  const bench = new Bench();
  bench.allowReplan = false;
  bench.restarted();
  const base = await bench.base();
  withRoom(bench, 20);
  await rejects(bench.train(base, 1), ({ message, retryable }: EngineError) => {
    return message.includes("recovery.allow_replan is false") && !retryable &&
      message.includes("deno task rl resume a trainer.micro_batch_tokens_max=32");
  });
  deepStrictEqual(bench.kinds().includes("note/replan"), false);
});

Deno.test("PolicyTrainer: a host's kernel that kills for want of memory changes no numerics", async () => {
  const bench = new Bench();
  const base = await bench.base();
  bench.ranks.hook = ({ op }) => {
    if (op === "train") throw new OutOfMemoryError("killed", { exception: null, signal: "SIGKILL" });
  };
  await rejects(bench.train(base, 1), OutOfMemoryError);
  deepStrictEqual(bench.kinds().includes("note/replan"), false);
});

Deno.test("PolicyTrainer: batches of another world size are redone on it and handed over; then this one goes on", async () => {
  const bench = new Bench();
  bench.restarted(2);
  const { versions, digest } = await fourVersions(bench);
  bench.restarted(1);
  strictEqual(await bench.digest(versions[4]!), digest);
  deepStrictEqual(bench.others!.map(({ calls }) => calls.map(({ op }) => op).join(" ")), ["load train train save"]);
  strictEqual(bench.ops(), "publish load publish");
  const handed = bench.rows.filter(({ kind }) => kind === "note/checkpoint").at(-1)!;
  deepStrictEqual([handed.key, (handed.value as { world_size: number }).world_size], [versions[4]!.version, 2]);
  strictEqual(bench.recoveries.at(-1)!.batches_redone, 2);
  const five = await bench.train(versions[4]!, 5);
  const record = await bench.artifacts.getJson(five.record) as { numerics: { world_size: number } };
  strictEqual(record.numerics.world_size, 1);
  const after = await bench.digest(five);
  bench.restarted(1);
  strictEqual(await bench.digest(five), after);
  strictEqual(bench.others!.length, 1); // From the checkpoint between the two sizes on.
});

Deno.test("PolicyTrainer: a chain of two world sizes is redone across the change, from the base", async () => {
  const bench = new Bench();
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

Deno.test("PolicyTrainer: a checkpoint between two world sizes is among what is written until it is recorded", async () => {
  const bench = new Bench();
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
    if (kind === "note/checkpoint") seen.push(["recording", bench.trainer.writing.has((value as { dir: string }).dir)]);
    await record(kind, key, value);
  };
  await bench.trainer.publish(two, `${bench.dir}/out`, { ...caller, record: watched });
  // Of version 1 by these ranks, of version 2 by the one rank that it was trained on.
  deepStrictEqual(seen, [["begun", true], ["recording", true], ["recording", true]]);
  strictEqual(bench.trainer.writing.size, 0);
});

Deno.test("PolicyTrainer: where the old world size cannot be had, nothing is rolled back in silence", async () => {
  const bench = new Bench();
  bench.restarted(2);
  const { versions } = await fourVersions(bench);
  bench.others = null;
  bench.restarted(1);
  await rejects(bench.digest(versions[4]!), ({ message, retryable }: EngineError) => {
    return !retryable && message.includes("batches 3 to 4") && message.includes("on 2 ranks") &&
      message.includes("the machine is smaller") && message.includes("fork RUN --round 2");
  });
  strictEqual(await bench.digest(versions[2]!) !== "", true); // At a checkpoint no batch is left behind.
});

Deno.test("PolicyTrainer: saveNow() writes the newest policy once, and nothing where nothing is held", async () => {
  const bench = new Bench();
  const base = await bench.base();
  strictEqual(await bench.trainer.saveNow(bench.caller("preempted")), null);
  const one = await bench.train(base, 1);
  const saved = await bench.trainer.saveNow(bench.caller("preempted"));
  deepStrictEqual([saved!.version, saved!.round], [one.version, null]);
  strictEqual(await bench.trainer.saveNow(bench.caller("preempted")), null);
  const two = await bench.train(one, 2);
  bench.ranks.forget();
  strictEqual(await bench.trainer.saveNow(bench.caller("preempted")), null);
  bench.restarted();
  await bench.digest(two);
  deepStrictEqual(bench.recoveries.at(-1)!.batches_redone, 1);
});

Deno.test("PolicyTrainer: saveNow() during a step saves what the step makes", async () => {
  const bench = new Bench();
  const base = await bench.base();
  let saving: ReturnType<PolicyTrainer["saveNow"]> | undefined;
  bench.ranks.hook = ({ op }, moment) => {
    if (op === "train" && moment === "begin") saving ??= bench.trainer.saveNow(bench.caller("preempted"));
  };
  const one = await bench.train(base, 1);
  deepStrictEqual([(await saving)?.version, bench.ops().split(" ").slice(-2)], [one.version, ["train", "save"]]);
});
