import { deepStrictEqual, match } from "node:assert/strict";
import { runJob, Running, togetherJob } from "./job.ts";

Deno.test("togetherJob() runs files in one isolate, and names one that cannot be loaded", async () => {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-together-" });
  try {
    const texts = {
      "a_test.ts": `globalThis.loaded = 1; Deno.test("a", () => {});`,
      "b_test.ts": `import "./missing.ts";`,
      "c_test.ts":
        `Deno.test("c", () => { if (globalThis.loaded !== 1) throw new Error("alone"); });`,
      "d_test.ts": ``,
    };
    const files = Object.keys(texts).map((name) => `${dir}/${name}`);
    for (const [name, text] of Object.entries(texts)) {
      Deno.writeTextFileSync(`${dir}/${name}`, text);
    }
    const job = togetherJob("job", files, `${dir}/job`);
    const ended = await runJob(job, { silence_ms: 60_000, running: new Running() });
    const [a, b, c, d] = files;
    deepStrictEqual([...ended.seconds_of.keys()], [a, b, c]);
    deepStrictEqual(ended.cases.map(({ name, outcome }) => [name, outcome]).toSorted(), [
      [`${b} is loaded`, "failed"],
      ["a", "passed"],
      ["c", "passed"],
    ]);
    match(ended.output, /Module not found/);
    deepStrictEqual(ended.problem, `no test ran in ${d} (exit code 1)`);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
