import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { type EngineError, NoProgressError } from "../../engine/mod.ts";
import { failureError, failureReport } from "../../workers/mod.ts";
import { ReplacementBudget } from "../../workers/supervision.ts";

const place = { run: "r", group: "trainer", generation: 1, op: "train" };
const failed = (report: Parameters<typeof failureReport>[0], op = "train") =>
  failureError([failureReport(report)], { ...place, op });
/** How many of `times` failures are answered with a replacement, from the first on. */
const replacements = (error: EngineError, times: number, budget = new ReplacementBudget()) =>
  Array.from({ length: times }, () => budget.spend(error)).filter((one) => one).length;

const EXIT = failed({ cause: "exit", exit_code: 7, message: "ended with exit code 7" });
const CRASH = failed({ cause: "signal", signal: "SIGSEGV", message: "killed by SIGSEGV" });
const KILLED = failed({ cause: "signal", signal: "SIGKILL", oom_kills: 0 });

Deno.test("ReplacementBudget: three for a failure, one for what a second time proves, none for what repeats", () => {
  deepStrictEqual(
    [
      replacements(EXIT, 9),
      replacements(new NoProgressError("x", { op: "train" }), 9),
      replacements(CRASH, 9),
      replacements(failed({ exception: "ValueError", message: "no" }), 9),
      replacements(failed({ cause: "import_error" }), 9),
      replacements(failed({ message: "ncclInvalidUsage: Duplicate GPU detected" }), 9),
    ],
    [3, 3, 1, 1, 0, 0],
  );
});

Deno.test("ReplacementBudget is counted by fingerprint, and in all", () => {
  const budget = new ReplacementBudget();
  strictEqual(replacements(EXIT, 3, budget), 3);
  strictEqual(replacements(CRASH, 2, budget), 1);
  const others = ["a", "b", "c", "d", "e", "f"].map((op) =>
    replacements(failed({ cause: "exit", exit_code: 7 }, op), 1, budget)
  );
  deepStrictEqual(others, [1, 1, 1, 1, 1, 0]);
  strictEqual(budget.spent, 9);
});

Deno.test("ReplacementBudget: progress gives all of it back", () => {
  const budget = new ReplacementBudget();
  strictEqual(replacements(CRASH, 2, budget), 1);
  budget.progressed();
  deepStrictEqual([replacements(CRASH, 2, budget), budget.spent], [1, 1]);
});

Deno.test("ReplacementBudget: what somebody did to a process costs nothing, but not for ever", () => {
  const budget = new ReplacementBudget();
  strictEqual(replacements(KILLED, 20, budget), 20);
  strictEqual(replacements(EXIT, 9, budget), 3);
  strictEqual(replacements(KILLED, 40, budget), 30);
});
