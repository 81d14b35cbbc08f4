/** What is printed of a run in which no step was taken: at its end, and whenever it is shown. */
import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { reportEnd } from "../../cli/run_end.ts";
import { runText } from "../../cli/display/run_text.ts";
import { runView } from "../../runs/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../runs/fake_home.ts";

// Fake completions are never the answer: every group is all zeros.
const ALL_ALIKE = [{ name: "exact_match" }];
const NO_STEP = "no step was taken because none of 4 groups had an advantage (zero_advantage 4)";

/** The last lines of a fake run of two rounds, and what `show` says of it. */
async function ended(reward: object[]) {
  const home = await freshFakeHome();
  try {
    await createFakeRun(home, "r", { rounds: 2, reward });
    const { status } = await executeFake(home, "r");
    strictEqual(status, "done");
    const head = (await home.store.head("r"))!;
    const lines: string[] = [];
    const code = await reportEnd(head, {
      home,
      outcome: { status: "done", output: null },
      note: (l) => lines.push(l),
    });
    const shown = runText(await runView(home.store, head, { workers: [], metrics: {} }), home)
      .split("\n");
    return { code, lines, warnings: shown.filter((line) => line.startsWith("warning")) };
  } finally {
    await Deno.remove(home.dir, { recursive: true });
  }
}

Deno.test("the closing lines and show of a run that took no step say so, with the causes, before where its model is", async () => {
  const { code, lines, warnings } = await ended(ALL_ALIKE);
  strictEqual(code, 0);
  deepStrictEqual(lines.map((line) => line.split(" ")[0]), ["WARNING:", "run"]);
  strictEqual(
    lines[0],
    `WARNING: run r trained nothing: in all its rounds ${NO_STEP}. Its model is unchanged`,
  );
  match(lines[1]!, /^run r is done\./);
  deepStrictEqual(warnings, [`warning    ${NO_STEP}`]);
});

Deno.test("the closing lines and show of a run that took a step warn of nothing", async () => {
  const { lines, warnings } = await ended([{ name: "length", unit: "characters", max: 8 }]);
  deepStrictEqual([lines.length, warnings], [1, []]);
  match(lines[0]!, /^run r is done\./);
});
