import { deepStrictEqual } from "node:assert/strict";
import { SUITES, testFiles } from "./suites.ts";

const files = await testFiles();

Deno.test("every path of a long suite begins that of a test file, and no file is in two", () => {
  const begun = (start: string) => files.filter((file) => file.startsWith(start));
  const starts = Object.values(SUITES).flatMap((suite) => suite.files);
  deepStrictEqual(starts.filter((start) => begun(start).length === 0), []);
  const twice = starts.flatMap(begun).filter((file, i, all) => all.indexOf(file) !== i);
  deepStrictEqual(twice, []);
});

Deno.test("long suites are sorted by name", () => {
  const names = Object.keys(SUITES);
  deepStrictEqual(names, names.toSorted());
});
