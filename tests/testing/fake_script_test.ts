import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { failureReport, FakeFailure } from "../../testing/mod.ts";

Deno.test("failureReport() has a value for every field, and takes those that it is given", () => {
  const report = failureReport({ rank: 3, cause: "out_of_memory" });
  deepStrictEqual([report.rank, report.cause], [3, "out_of_memory"]);
  const missing = Object.entries(report).filter(([, value]) => value === undefined);
  deepStrictEqual(missing, []);
});

Deno.test("FakeFailure has a report for each rank, and the message of the first", () => {
  const failure = new FakeFailure({ message: "out of disk" }, { rank: 1 });
  strictEqual(failure.message, "out of disk");
  deepStrictEqual(failure.reports.map(({ rank, message }) => [rank, message]), [
    [0, "out of disk"],
    [1, "scripted failure"],
  ]);
  strictEqual(new FakeFailure().message, "scripted failure");
});
