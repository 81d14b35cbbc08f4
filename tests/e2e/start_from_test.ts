import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { endAll, freshHome, json, rl, SMALL, start } from "../cli/fixtures.ts";
import { orphans } from "../crash/runs.ts";

type Shown = { status: string; policy: unknown; critic: unknown; ledger: unknown; start?: unknown };

Deno.test.afterAll(endAll);
const home = await freshHome();
const at = ["--home", home];
const file = `${home}/ppo.yaml`;
const shown = async (id: string) => {
  const { status, policy, critic, ledger } = await json<Shown>(["show", id, ...at]);
  return { status, policy, critic, ledger };
};

/** As another release would have recorded it. */
function foreign(id: string): void {
  const db = new DatabaseSync(`${home}/holdfast.db`);
  const packages = JSON.stringify({ holdfast: "0.0.9", sources: "f".repeat(64) });
  db.prepare("UPDATE runs SET packages = ? WHERE id = ?").run(packages, id);
  db.close();
}

Deno.test("a run of another release goes on in a new run: killed, without the other one's files, it ends with its weights", async () => {
  const small = ["online.rounds=1", "evaluate.problems=4", "checkpoints.every_rounds=1"];
  const model = await rl(["run", SMALL, ...small, ...at, "--id", "model"]);
  strictEqual(model.code, 0, model.err);
  const rows = Array.from({ length: 24 }, (_, n) => {
    const problem = String(10_007 * (n + 1) % 100_000).padStart(5, "0");
    return { prompt: `sort ${problem} =`, answer: [...problem].sort().join("") };
  });
  await Deno.writeTextFile(
    `${home}/rows.jsonl`,
    rows.map((row) => `${JSON.stringify(row)}\n`).join(""),
  );
  const config = {
    flow: "online",
    rounds: 4,
    prompts_per_round: 8,
    samples_per_prompt: 4,
    model: { path: `${home}/runs/model/final` },
    data: { train: "rows.jsonl" },
    algorithm: "ppo",
    reward: ["exact_match", { name: "characters_in_place", weight: 0.5 }],
    trainer: { optimizer: { lr: 4e-4, schedule: { name: "linear", total_steps: 9 } } },
    sampler: { tokens_max: 8 },
    rollouts: { slab_groups: 4 },
    checkpoints: { every_rounds: 2, keep_last: 2 },
    workers: { grace_s: 0 },
  };
  await Deno.writeTextFile(file, JSON.stringify(config));
  const whole = await rl(["run", file, ...at, "--id", "whole"]);
  strictEqual(whole.code, 0, whole.err);
  const undisturbed = await shown("whole");
  foreign("whole");
  const fork = await rl(["fork", "whole", "--round", "2", ...at]);
  strictEqual(fork.code, 2);
  match(fork.err, /or start a new run with start_from=whole: it continues from the newest/);
  const wrong = await rl(["run", file, "start_from=whole@1", "seed=1", ...at]);
  deepStrictEqual([wrong.code, wrong.err.split("\n")[0]], [
    2,
    "override start_from: run 'whole' keeps no checkpoint of its policy and its value model after " +
    "round 1; a start is possible after round 2, 4",
  ]);
  const plan = await rl(["plan", file, "start_from=whole@2", ...at]);
  match(plan.out, /^start {6}after round 2 of run whole$/m);
  const running = start(["run", file, "start_from=whole@2", ...at, "--id", "on"]);
  await running.says("round 3/4");
  running.kill("SIGKILL");
  await running.ended;
  strictEqual(await orphans(home), 0);
  await Deno.remove(`${home}/checkpoints/whole`, { recursive: true });
  const resumed = await rl(["resume", "on", ...at]);
  strictEqual(resumed.code, 0, resumed.err);
  deepStrictEqual(await shown("on"), undisturbed);
  const { equal, versions } = await json<{ equal: boolean; versions: { group?: string }[] }>(
    ["verify", "on", ...at],
  );
  ok(equal);
  deepStrictEqual(versions.map(({ group = "trainer" }) => group).toSorted(), [
    "critic",
    "critic",
    "critic",
    "trainer",
    "trainer",
    "trainer",
  ]);
});
