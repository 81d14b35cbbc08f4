import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { longRuns, withLongRun } from "./long_tests.ts";

const PAGE = "# Long tests\n\n| suite | shows | commit |\n| --- | --- | --- |\n";
const CRASH = {
  name: "crash",
  about: "kills of every process, at many moments",
  commit: "0123abcd4",
  date: "2026-11-28",
  passed: 41,
  failed: 0,
  minutes: 22.5,
};

Deno.test("a long run's row is read back, replaced by its next run, and sorted among the others", () => {
  const first = withLongRun(PAGE, { ...CRASH, name: "recorded" });
  const both = withLongRun(first, CRASH);
  deepStrictEqual([...longRuns(both).keys()], ["crash", "recorded"]);
  deepStrictEqual(longRuns(both).get("crash"), CRASH);
  const again = { ...CRASH, commit: "feedbeef1+", failed: 2 };
  const page = withLongRun(both, again);
  deepStrictEqual(longRuns(page).get("crash"), again);
  strictEqual(page.split("\n").length, both.split("\n").length);
  strictEqual(page.startsWith(PAGE), true);
});
