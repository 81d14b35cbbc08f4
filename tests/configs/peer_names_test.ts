import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { FLOWS, parseConfig } from "../../configs/mod.ts";
import { PEER_NAMES, peerHint } from "../../configs/peer_names.ts";
import { fieldPaths } from "../../configs/schema_walk.ts";

const PATHS = new Map(Object.entries(FLOWS).map(([flow, schema]) => [flow, fieldPaths(schema)]));
const EVERY_PATH = [...PATHS.values()].flat();

Deno.test("every path that a peer's name leads to exists", () => {
  const paths = Object.values(PEER_NAMES).filter((known) => typeof known !== "string").flat();
  deepStrictEqual(paths.filter((path) => !EVERY_PATH.includes(path)), []);
});

Deno.test("every setting that a sentence names exists", () => {
  for (const sentence of Object.values(PEER_NAMES).filter((known) => typeof known === "string")) {
    const blocks = [...sentence.matchAll(/\b(trainer|sampler|checkpoints|data)[.:]\s*\{?\s*(\w+)/g)];
    for (const [, block, field] of blocks) ok(EVERY_PATH.includes(`${block}.${field}`), `${block}.${field}`);
  }
});

Deno.test("peerHint() names what the flow at hand has", () => {
  strictEqual(peerHint("learning_rate", PATHS.get("online")!), " (here it is trainer.optimizer.lr)");
  strictEqual(peerHint("learning_rate", PATHS.get("quickstart")!), " (here it is online.optimizer.lr)");
  strictEqual(peerHint("learning_rate", PATHS.get("preference")!), " (here it is trainer.optimizer.lr)");
  strictEqual(peerHint("num_generations", PATHS.get("supervised")!), "");
  match(peerHint("report_to", []), /metrics\.jsonl/);
});

Deno.test("a peer's name is answered with ours, at the top and in a block", async () => {
  const text = "flow: quickstart\nreport_to: wandb\nsampler: { max_new_tokens: 8 }\ntrainer: { learning_rate: 1 }\n" +
    "warmup: { rounds: 1, rows_per_round: 4 }\nonline: { rounds: 1, prompts_per_round: 4, samples_per_prompt: 2 }\n";
  await rejects(parseConfig(text, { file: "x.yaml" }), (error) => {
    const lines = String((error as Error).message).split("\n");
    deepStrictEqual(lines.map((line) => line.replace(/^\S+ /, "")), [
      "report_to: unknown key (metrics are in runs/RUN/metrics.jsonl of the home; trackers are not there yet)",
      "sampler.max_new_tokens: unknown key (here it is sampler.tokens_max)",
      "trainer.learning_rate: unknown key (here it is online.optimizer.lr)",
    ]);
    return true;
  });
});
