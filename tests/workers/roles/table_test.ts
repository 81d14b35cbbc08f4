import { deepStrictEqual, strictEqual } from "node:assert/strict";
import {
  operationPhase,
  plannedGroups,
  ROLES,
  SamplerConfig,
  TrainerConfig,
  ValueModelConfig,
  WorkersConfig,
} from "../../../workers/mod.ts";

Deno.test("operationPhase() is what a role declares of an operation, else other", () => {
  const phases = [["sampler", "load"], ["trainer", "load"], ["trainer", "evaluate"], [
    "reward",
    "score",
  ], ["moon", "x"]]
    .map(([role, op]) => operationPhase(role!, op!));
  deepStrictEqual(phases, ["publication", "other", "training", "other", "other"]);
});

Deno.test("plannedGroups() lists a run's groups in the order in which they get GPUs", () => {
  const blocks = {
    seed: 1,
    workers: WorkersConfig.parse({}),
    trainer: TrainerConfig.parse({}),
    sampler: SamplerConfig.parse({ replicas: 2 }),
    reward_processes: 3,
    allow_replan: true,
  };
  deepStrictEqual([...plannedGroups(blocks).keys()], [
    "trainer",
    "sampler/0",
    "sampler/1",
    "reward",
  ]);
  const value_model = ValueModelConfig.parse({ ranks: 2 });
  const all = plannedGroups({ ...blocks, value_model });
  deepStrictEqual([...all.keys()], ["trainer", "critic", "sampler/0", "sampler/1", "reward"]);
  deepStrictEqual([all.get("trainer")!.ranks, all.get("critic")!.ranks], [1, 2]);
  strictEqual(all.get("critic")!.spec.head, "value");
});

Deno.test("every name in the table is used once", () => {
  strictEqual(new Set(ROLES.map(({ name }) => name)).size, ROLES.length);
});
