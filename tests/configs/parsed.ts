/** Configurations that load, and what is wrong with those that do not. */
import { rejects } from "node:assert/strict";
import { type OnlineConfig, parseConfig } from "../../configs/mod.ts";

export const DIR = decodeURIComponent(new URL("./bad", import.meta.url).pathname);
export const ONLINE = `flow: online
rounds: 2
prompts_per_round: 4
samples_per_prompt: 2
model: { path: model }
data: { train: rows.jsonl }
algorithm: grpo
reward: exact_match
trainer:
  optimizer: { lr: 1e-5 }
`;

export const load = async (overrides: string[] = [], text = ONLINE) =>
  await parseConfig(text, { file: `${DIR}/x.yaml`, cwd: DIR, overrides });
export const online = async (overrides: string[] = [], text = ONLINE) =>
  (await load(overrides, text)).config as OnlineConfig;
export const lines = async (overrides: string[], text = ONLINE) => {
  let problems: string[] = [];
  await rejects(load(overrides, text), (error) => {
    problems = (error as Error).message.replaceAll(DIR, "DIR").split("\n");
    return true;
  });
  return problems;
};
