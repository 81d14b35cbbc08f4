import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { WorkerLostError } from "../../../engine/mod.ts";
import { ReplacementBudget } from "../../../workers/failures/replacement_budget.ts";

const lost = (fingerprint: string, action = "restart", cause = "worker_lost") =>
  new WorkerLostError("Cannot continue", { failure: { fingerprint, action, cause } });
const uncounted = () => new WorkerLostError("Cannot continue", {}, { counted: false });

Deno.test("ReplacementBudget allows three replacements for one failure", () => {
  const budget = new ReplacementBudget();
  deepStrictEqual([1, 2, 3, 4].map(() => budget.spend(lost("a"))), [true, true, true, false]);
  deepStrictEqual([budget.spent, budget.failures], [3, 4]);
});

Deno.test("ReplacementBudget allows one replacement to confirm a failure", () => {
  const budget = new ReplacementBudget();
  deepStrictEqual([1, 2].map(() => budget.spend(lost("a", "confirm"))), [true, false]);
});

Deno.test("ReplacementBudget allows nine replacements for different failures", () => {
  const budget = new ReplacementBudget();
  const spent = Array.from({ length: 10 }, (_, i) => budget.spend(lost(`failure ${i}`)));
  deepStrictEqual(spent, [...Array(9).fill(true), false]);
});

Deno.test("ReplacementBudget counts failures without a verdict by code and operation", () => {
  const budget = new ReplacementBudget(1);
  const without = (op: string) => new WorkerLostError("Cannot continue", { op });
  deepStrictEqual([without("a"), without("b"), without("a")].map((each) => budget.spend(each)), [
    true,
    true,
    false,
  ]);
});

Deno.test("ReplacementBudget limits what was done to the processes separately, at fifty", () => {
  const budget = new ReplacementBudget();
  const spent = Array.from({ length: 51 }, () => budget.spend(uncounted()));
  deepStrictEqual(spent, [...Array(50).fill(true), false]);
  strictEqual(budget.spend(lost("a")), true);
});

Deno.test("ReplacementBudget never replaces for a repeating failure, except of the work", () => {
  const budget = new ReplacementBudget();
  strictEqual(budget.spend(lost("a", "stop")), false);
  strictEqual(budget.spend(lost("b", "stop", "user_code")), true);
  strictEqual(budget.spend(lost("c", "stop", "bad_data")), true);
});

Deno.test("ReplacementBudget gets everything back with recorded work", async () => {
  const budget = new ReplacementBudget(1);
  budget.spend(lost("a"));
  await budget.progressOnceRecorded(Promise.resolve("done"), Promise.resolve());
  deepStrictEqual([budget.spent, budget.failures, budget.spend(lost("a"))], [0, 1, true]);
});

Deno.test("ReplacementBudget gets nothing back for failed or lost work", async () => {
  const budget = new ReplacementBudget(1);
  budget.spend(lost("a"));
  await budget.progressOnceRecorded(Promise.reject(new Error("Cannot train")));
  const recorded = Promise.withResolvers<void>();
  const done = Promise.resolve("done");
  const progress = budget.progressOnceRecorded(done, recorded.promise);
  await done;
  budget.spend(lost("b"));
  recorded.resolve();
  await progress;
  deepStrictEqual([budget.spent, budget.spend(lost("a"))], [2, false]);
});

Deno.test("ReplacementBudget.final() keeps the error's class and counts the replacements", () => {
  const budget = new ReplacementBudget();
  const error = lost("a");
  strictEqual(budget.final(error, "trainer"), error);
  budget.spend(error);
  const final = budget.final(error, "trainer");
  deepStrictEqual([final instanceof WorkerLostError, final.retryable, final.facts.replacements], [
    true,
    false,
    1,
  ]);
  strictEqual(
    final.message,
    "Cannot continue\n  trainer was replaced 1 times without committed progress",
  );
});
