import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { endAll, exists, freshHome, json, rl, SMALL } from "../fixtures.ts";

Deno.test.afterAll(endAll);

Deno.test("plan draws the graph, counts it and says where it runs, as text and as mermaid, and starts nothing", async () => {
  const home = await freshHome();
  const at = ["--home", home];
  const text = await rl(["plan", SMALL, "online.rounds=3", ...at]);
  strictEqual(text.code, 0);
  const lines = text.out.split("\n");
  match(lines[0]!, /^quickstart {2}[0-9a-f]{12}$/);
  deepStrictEqual(lines.filter((line) => /× \d/.test(line)), [
    "├─ step × 3  <- policy: prepare_raw",
    "├─ round × 3  <- policy: prepare_policy",
  ]);
  ok(
    lines.includes(
      "│  ├─ assign_credit  <- scored: round/*/score_group, tokens: round/*/score_tokens, " +
        "policy_number: round(policy).number",
    ),
  );
  ok(lines.includes("train_policy          trainer  6"));
  ok(
    lines.includes(
      "batch      8 prompts x 4 samples = 32 trajectories a round over 1 rank; x 3 rounds = 96",
    ),
  );
  ok(lines.includes("placement  trainer: torch, 1 x auto, float32"));
  const drawn = (await rl(["plan", SMALL, "--format", "mermaid", ...at])).out;
  match(drawn, /^flowchart TD\n {2}n0\["create_model \[trainer\]"\]\n/);
  match(drawn, /subgraph n\d+\["round × 6"\]/);
  const { graph_hash, stages } = await json<
    { graph_hash: string; stages: { stage: string; times: number }[] }
  >(
    ["plan", SMALL, ...at],
  );
  strictEqual(graph_hash.length, 64);
  strictEqual(stages.find(({ stage }) => stage === "train_policy")!.times, 9);
  strictEqual(await exists(`${home}/holdfast.db`), false);
});

Deno.test("plan names models and data of the hub, their kernels and their code offline", async () => {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-plan-" });
  try {
    await Deno.writeTextFile(`${dir}/rows.jsonl`, '{"prompt": "1 + 1", "completion": "2"}\n');
    await Deno.writeTextFile(
      `${dir}/hub.yaml`,
      "flow: supervised\nrounds: 1\nrows_per_round: 1\nalgorithm: sft\n" +
        "model: { path: owner/tiny@v1 }\ndata: { train: rows.jsonl }\n",
    );
    const nowhere = { HF_ENDPOINT: "http://127.0.0.1:9", HF_HOME: dir };
    const lines = async (...overrides: string[]) =>
      (await rl(["plan", `${dir}/hub.yaml`, ...overrides], nowhere)).out.split("\n")
        .filter((line) => /^(model|data) /.test(line));
    deepStrictEqual(await lines(), ["model      model.path: owner/tiny@v1 of the hub"]);
    deepStrictEqual(
      await lines(
        "model.path=a/b",
        "model.attn_implementation=eager",
        "model.trust_remote_code=true",
        "model.open_with_missing=true",
        "model.open_with_unexpected=true",
        "data.train.0.path=hf://datasets/a/rows?split=train",
      ),
      [
        "model      model.path: a/b@main of the hub",
        "model      attention by eager",
        "model      trust_remote_code is on: Python code of the model runs in the workers with " +
        "your rights",
        "model      open_with_missing is on: tensors that the model lacks start as random numbers",
        "model      open_with_unexpected is on: tensors that the model has no place for are left out",
        "data       data.train.0.path: hf://datasets/a/rows@main?split=train of the hub",
      ],
    );
    deepStrictEqual(
      await Array.fromAsync(Deno.readDir(dir), ({ name }) => name).then((names) => names.sort()),
      ["hub.yaml", "rows.jsonl"],
    );
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
