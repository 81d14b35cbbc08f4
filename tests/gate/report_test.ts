import { deepStrictEqual } from "node:assert/strict";
import { BEGINS, caseSeconds, casesOf, countOf, denoSeconds, TOGETHER } from "./report.ts";

const FILES = [
  "tests/engine/a_test.ts",
  "tests/python/test_a.py",
  "tests/python/test_ab.py",
];

Deno.test("casesOf() reads Deno's report: names, seconds, steps, failures and tests that were left out", () => {
  const xml = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="deno test" tests="3" failures="1" errors="0" time="1.5">
    <testsuite name="./tests/engine/a_test.ts" tests="3" disabled="1" errors="0" failures="1">
        <testcase name="a &lt; b &amp; &quot;c&quot;" classname="./tests/engine/a_test.ts" time="1.250" line="3" col="6">
        </testcase>
        <testcase name="fails" classname="./tests/engine/a_test.ts" time="0.25" line="9" col="6">
            <failure message="Uncaught AssertionError">at a_test.ts:10</failure>
        </testcase>
        <testcase name="fails &gt; a step" classname="./tests/engine/helper.ts" time="0.200" line="9" col="6">
        </testcase>
        <testcase name="left out" classname="./tests/engine/a_test.ts" time="0.000" line="12" col="6">
            <skipped/>
        </testcase>
    </testsuite>
</testsuites>`;
  const file = FILES[0]!;
  const cases = casesOf(xml, FILES);
  deepStrictEqual(cases, [
    { file, name: 'a < b & "c"', seconds: 1.25, outcome: "passed" },
    { file, name: "fails", seconds: 0.25, outcome: "failed" },
    { file: "tests/engine/helper.ts", name: "fails > a step", seconds: 0.2, outcome: "passed" },
    { file, name: "left out", seconds: 0, outcome: "skipped" },
  ]);
  deepStrictEqual(countOf(cases), { passed: 2, failed: 1, skipped: 1 });
});

Deno.test("casesOf() reads pytest's report: a class, an error of a fixture, a longer name of a file", () => {
  const xml =
    `<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="0" skipped="0" tests="3">` +
    `<testcase classname="tests.python.test_a" name="test_one[1]" time="0.5" />` +
    `<testcase classname="tests.python.test_a.TestIt" name="test_two" time="2"><error message="x">setup</error></testcase>` +
    `<testcase classname="tests.python.test_ab" name="test_three" time="0.125" /></testsuite></testsuites>`;
  const cases = casesOf(xml, FILES);
  deepStrictEqual(cases.map(({ file, outcome }) => [file, outcome]), [
    [FILES[1], "passed"],
    [FILES[1], "failed"],
    [FILES[2], "passed"],
  ]);
  deepStrictEqual([...caseSeconds(cases)], [[FILES[1], 2.5], [FILES[2], 0.125]]);
});

Deno.test("casesOf() finds nothing in what is no report", () => {
  deepStrictEqual(casesOf("", FILES), []);
});

Deno.test("denoSeconds() adds up each file's tests as they are printed, steps and empty files aside", () => {
  const output = `running 3 tests from ./tests/a_test.ts
one ... ok (250ms)
two ...
  a step ... ok (20s)
------- output -------
said (by a test)
two ... FAILED (due to 1 failed step) (1m4s)
three ... ignored (0ms)
running 0 tests from ./tests/b_test.ts
running 1 test from ./tests/c_test.ts
four (at the end) ... ok (500µs)
running 1 test from ./tests/d_test.ts
five's ...'five's' has been running for over (1m0s)
'five's' has been running for over (2m0s)
 ok (2m4s)

ok | 3 passed (1 step) | 1 failed (2m)`;
  deepStrictEqual([...denoSeconds(output)], [["tests/a_test.ts", 64.25], [
    "tests/c_test.ts",
    0.0005,
  ], ["tests/d_test.ts", 124]]);
});

Deno.test("denoSeconds() knows whose a test is where files share an isolate", () => {
  const output = `running 5 tests from ./${TOGETHER}
${BEGINS}tests/a_test.ts ... ok (1ms)
one ... ok (250ms)
${BEGINS}tests/b_test.ts ... ok (1ms)
${BEGINS}tests/c_test.ts ... ok (1ms)
two ... ok (2s)`;
  deepStrictEqual([...denoSeconds(output)], [["tests/a_test.ts", 0.25], ["tests/c_test.ts", 2]]);
});
