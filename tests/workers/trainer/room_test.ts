import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { type EngineError, OutOfMemoryError } from "../../../engine/mod.ts";
import type { CallOptions } from "../../../workers/mod.ts";
import { TrainerBench } from "./trainer_bench.ts";

/** Ranks that have room for micro-batches of up to `room` tokens, and say how they cut. */
function withRoom(
  bench: TrainerBench,
  room: number,
  { ops = ["train", "score"], cut = {} } = {},
): void {
  bench.ranks.hook = ({ op, args }, moment) => {
    const { micro_batch_tokens_max: tokens = 0 } = args as { micro_batch_tokens_max?: number };
    if (moment !== "begin" || !ops.includes(op) || tokens <= room) return;
    bench.ranks.forget();
    throw new OutOfMemoryError("CUDA out of memory", {
      run: "a",
      exception: "OutOfMemoryError",
      signal: null,
    });
  };
  const { ranks } = bench;
  const call = ranks.call.bind(ranks);
  ranks.call = (op, args, options: CallOptions) => {
    const at = { rank: 0, phase: "no_room", done: 0, total: null };
    if (ops.includes(op)) options.onProgress?.({ ...at, metrics: cut });
    return call(op, args, options);
  };
}

Deno.test("fitting() halves the micro-batch without room, records it and keeps it", async () => {
  const bench = new TrainerBench();
  const base = await bench.base();
  withRoom(bench, 20);
  const one = await bench.train(base, 1);
  const expected = [[64, 32], [32, 16]].map(([from, to]) => (
    { round: null, cause: "out_of_memory", field: "trainer.micro_batch_tokens_max", from, to }
  ));
  const replans = () =>
    bench.rows.filter(({ kind }) => kind === "note/replan").map(({ value }) => value);
  deepStrictEqual(replans(), expected);
  const record = await bench.artifacts.getJson(one.record) as {
    numerics: { micro_batch_tokens_max: number };
  };
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

Deno.test("fitting(): older versions are redone with their own micro-batch", async () => {
  const bench = new TrainerBench();
  const one = await bench.train(await bench.base(), 1);
  withRoom(bench, 20);
  // The loss of the ranks redoes batch 1 too: at 64 tokens, which had room when it was trained.
  bench.ranks.hook = null;
  const lost = new OutOfMemoryError("CUDA out of memory", {
    exception: "OutOfMemoryError",
    signal: null,
  });
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

Deno.test("fitting() halves the cut that a rank reports, down to one sequence", async () => {
  const bench = new TrainerBench();
  const base = await bench.base();
  withRoom(bench, 10, { cut: { longest_tokens: 18, micro_batch_tokens: 40 } });
  await rejects(bench.train(base, 1), ({ message, retryable }: EngineError) => {
    return message.includes("one sequence of 18 tokens does not fit") && !retryable;
  });
  const to = bench.rows.filter(({ kind }) => kind === "note/replan").map(({ value }) =>
    (value as { to: number }).to
  );
  deepStrictEqual(to, [20, 18]);
});

Deno.test("fitting() with allow_replan: false stops with the command that continues", async () => {
  const bench = new TrainerBench();
  bench.allow_replan = false;
  bench.restarted();
  const base = await bench.base();
  withRoom(bench, 20);
  await rejects(bench.train(base, 1), ({ message, retryable }: EngineError) => {
    return message.includes("recovery.allow_replan is false") && !retryable &&
      message.includes("deno task rl resume a trainer.micro_batch_tokens_max=32");
  });
  deepStrictEqual(bench.kinds().includes("note/replan"), false);
});

Deno.test("fitting() changes no numerics if the host's memory ran out", async () => {
  const bench = new TrainerBench();
  const base = await bench.base();
  bench.ranks.hook = ({ op }) => {
    if (op === "train") {
      throw new OutOfMemoryError("killed", { exception: null, signal: "SIGKILL" });
    }
  };
  await rejects(bench.train(base, 1), OutOfMemoryError);
  deepStrictEqual(bench.kinds().includes("note/replan"), false);
});
