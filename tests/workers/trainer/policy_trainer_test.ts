import { deepStrictEqual, notStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import type { PolicyTrainer } from "../../../workers/mod.ts";
import { fourVersions, TrainerBench } from "./trainer_bench.ts";

Deno.test("PolicyTrainer: the first load of the base is a start, not a recovery", async () => {
  const bench = new TrainerBench();
  await bench.train(await bench.base(), 1);
  strictEqual(bench.ops(), "inspect_model train load train");
  deepStrictEqual(bench.recoveries, []);
});

Deno.test("PolicyTrainer: a version names its parent, batch and numerics", async () => {
  const bench = new TrainerBench();
  const base = await bench.base();
  const [one, other] = [await bench.train(base, 1), await bench.train(base, 2)];
  notStrictEqual(one.version, other.version);
  strictEqual((await bench.train(base, 1)).version, one.version);
  const record = await bench.artifacts.getJson(one.record) as Record<string, unknown>;
  deepStrictEqual([record.parent, (record.numerics as { engine: string }).engine], [
    base.version,
    "fake",
  ]);
});

Deno.test("PolicyTrainer: concurrent calls never mix their versions", async () => {
  const bench = new TrainerBench();
  const { versions, digest } = await fourVersions(bench);
  const [four, two, again] = await Promise.all([4, 2, 4].map((n) => bench.digest(versions[n]!)));
  deepStrictEqual([four, again], [digest, digest]);
  notStrictEqual(two, digest);
});

Deno.test("PolicyTrainer: a step that was trained is not trained again", async () => {
  const bench = new TrainerBench();
  const base = await bench.base();
  const one = await bench.train(base, 1);
  const digest = await bench.digest(one);
  strictEqual((await bench.train(base, 1)).version, one.version);
  strictEqual(await bench.digest(one), digest);
});

Deno.test("PolicyTrainer refuses a version of a different run by name", async () => {
  const [bench, other] = [new TrainerBench(), new TrainerBench()];
  const stranger = await other.train(await other.base(), 7);
  await rejects(bench.digest(stranger), {
    code: "bad_data",
    message: new RegExp(stranger.version.slice(0, 12)),
  });
  ok(!bench.ops().includes("load"));
});

Deno.test("PolicyTrainer.saveNow() writes the newest policy once if it is held", async () => {
  const bench = new TrainerBench();
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

Deno.test("PolicyTrainer.saveNow() during a step saves what the step makes", async () => {
  const bench = new TrainerBench();
  const base = await bench.base();
  let saving: ReturnType<PolicyTrainer["saveNow"]> | undefined;
  bench.ranks.hook = ({ op }, moment) => {
    if (op === "train" && moment === "begin") {
      saving ??= bench.trainer.saveNow(bench.caller("preempted"));
    }
  };
  const one = await bench.train(base, 1);
  deepStrictEqual([(await saving)?.version, bench.ops().split(" ").slice(-2)], [one.version, [
    "train",
    "save",
  ]]);
});

for (const group of [undefined, "critic"]) {
  Deno.test(`PolicyTrainer records a loss that cost no version, ${group ? "with the mark of its group" : "without a mark for the policy's"}`, async () => {
    const bench = new TrainerBench();
    bench.group = group;
    const losses = [{ cause: "out_of_memory", seconds: 7 }];
    Object.assign(bench.ranks, { takeLoss: () => losses.shift() ?? null });
    bench.opened();
    await bench.base();
    await bench.base();
    const loss = { at: "base", cause: "out_of_memory", seconds: 7 };
    const restart = { action: "restart", version: null, batches_redone: 0 };
    deepStrictEqual(bench.recoveries, [{ ...group && { group }, ...loss, ...restart }]);
  });
}

Deno.test("PolicyTrainer.publish() makes room in its turn, not while another publication is written", async () => {
  const bench = new TrainerBench();
  const base = await bench.base();
  const dirs = ["first", "second"].map((name) => `${bench.dir}/publications/${name}`);
  const [first, second] = dirs as [string, string];
  const publish = (dir: string) => bench.trainer.publish(base, dir, bench.caller("publish"));
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  bench.ranks.hook = async (call, moment) => {
    if (call.op !== "publish" || moment !== "begin") return;
    begun.resolve();
    await released.promise;
  };
  const one = publish(first);
  await begun.promise;
  const two = publish(second);
  // Long enough for a publication that did not wait for its turn to have looked for what is there.
  for (let looks = 0; looks < 50; looks++) await Deno.lstat(bench.dir);
  await Deno.mkdir(`${bench.dir}/publications`);
  await Deno.writeTextFile(second, "a file in the second one's place");
  released.resolve();
  strictEqual((await one).digest, (await two).digest);
  deepStrictEqual(
    await Promise.all(dirs.map(async (dir) => (await Deno.lstat(dir)).isDirectory)),
    [true, true],
  );
});
