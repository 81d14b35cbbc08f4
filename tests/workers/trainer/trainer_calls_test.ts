import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import type { Caller, Loss, Operator } from "../../../workers/mod.ts";
import { TrainerCalls } from "../../../workers/trainer/trainer_calls.ts";

function bench(group?: string) {
  const losses: Loss[] = [];
  const rows: unknown[] = [];
  const operator: Operator = {
    call: (_op, args) =>
      Promise.resolve({
        outputs: [{ dir: (args as { dir: string }).dir, digest: "d" }],
        blobs: [],
        generation: 1,
      }),
    takeLoss: () => losses.shift() ?? null,
  };
  const caller: Caller = {
    key: "k",
    attempt: 1,
    record: (...row) => Promise.resolve(void rows.push(row)),
  };
  return { calls: new TrainerCalls(operator, group), losses, rows, caller };
}

Deno.test("TrainerCalls.alone() is rank 0's answer", async () => {
  const { calls, caller } = bench();
  const input = { recipe: "tiny_qwen", seed: 1, dir: "/m" };
  deepStrictEqual(await calls.alone("create_model", input, caller), { dir: "/m", digest: "d" });
});

Deno.test("TrainerCalls.exclusive() runs one work at a time, also after a failure", async () => {
  const { calls, caller } = bench();
  const events: string[] = [];
  const first = calls.exclusive(caller, async () => {
    events.push("first begins");
    await Promise.resolve();
    events.push("first ends");
    throw new Error("no");
  });
  const second = calls.exclusive(caller, () => Promise.resolve(events.push("second")));
  await rejects(first, /^Error: no$/);
  strictEqual(await second, 3);
  deepStrictEqual(events, ["first begins", "first ends", "second"]);
});

Deno.test("TrainerCalls.exclusive() records a loss that cost no version", async () => {
  const { calls, losses, rows, caller } = bench();
  losses.push({ cause: "out_of_memory", seconds: 7 });
  for (const _ of [1, 2]) await calls.exclusive(caller, () => Promise.resolve());
  deepStrictEqual(rows, [["recovery", "k", {
    cause: "out_of_memory",
    seconds: 7,
    action: "restart",
    version: null,
    batches_redone: 0,
  }]]);
});

Deno.test("TrainerCalls marks rows of groups other than the policy's", async () => {
  const { calls, caller, rows } = bench("critic");
  await calls.marking(caller).record("note/version", "v", { number: 1 });
  deepStrictEqual(rows, [["note/version", "v", { group: "critic", number: 1 }]]);
  deepStrictEqual(calls.mark, { group: "critic" });
});

Deno.test("TrainerCalls leaves the policy's rows as they are", () => {
  const { calls, caller } = bench();
  strictEqual(calls.marking(caller), caller);
  deepStrictEqual(calls.mark, {});
});
